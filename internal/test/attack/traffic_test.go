//go:build unix

package attack

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// calmTraffic is the environment variable that makes this program a process of normal traffic.
const calmTraffic = "CALM_TRAFFIC"

// Normal traffic: the number of callers, the interval of their calls, and the minimum number of calls before and during an
// attack.
const (
	callers = 2
	pause   = 10 * time.Millisecond
	fewest  = 150
)

// An errand is the destination of normal traffic and the header fields of its requests.
type errand struct {
	URL    string
	Fields []string
}

// A report is its result.
type report struct {
	Calls, Lost    int
	Bounded        int           // refused by the bound of calls in flight; not included in Lost
	First          string        // error of the first lost call
	Before, During time.Duration // p99
}

// callCalmly is the main function of the process. It prints its upstream, and then runs errands. For each it reports when
// enough calls were made before the attack, and the end.
func callCalmly(in io.Reader, out io.Writer) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "calm") }))
	defer s.Close()
	say, hear := json.NewEncoder(out), json.NewDecoder(in)
	_ = say.Encode(s.URL)
	for {
		var e errand
		if hear.Decode(&e) != nil {
			return
		}
		r := &run{errand: e}
		r.grown = sync.NewCond(&r.mu)
		done := make(chan struct{})
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() { r.call(done) })
		}
		r.until(&r.before)
		_ = say.Encode(r.report())
		var word string
		_ = hear.Decode(&word)
		r.mu.Lock()
		r.under = true
		r.mu.Unlock()
		_ = hear.Decode(&word)
		r.until(&r.during)
		close(done)
		wg.Wait()
		_ = say.Encode(r.report())
	}
}

// A run is a running errand.
type run struct {
	errand

	mu     sync.Mutex
	before []time.Duration
	during []time.Duration
	lost   []string
	bound  int  // refusals by the bound of calls in flight
	under  bool // the attack has begun
	grown  *sync.Cond
}

// until waits for enough calls of a kind.
func (r *run) until(of *[]time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(*of) < fewest && len(r.lost) < fewest {
		r.grown.Wait()
	}
}

func (r *run) call(done <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			begin := time.Now()
			err := r.ask(client)
			r.note(time.Since(begin), err)
		}
	}
}

// errBounded reports that weir's learned bound of calls in flight was reached. The bound depends on the machine's speed.
var errBounded = errors.New("refused: concurrency_limited")

func (r *run) ask(client *http.Client) error {
	q, err := http.NewRequest("GET", r.URL, nil)
	if err != nil {
		return err
	}
	for _, f := range r.Fields {
		name, value, _ := strings.Cut(f, ": ")
		q.Header.Add(name, value)
	}
	resp, err := client.Do(q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.Header.Get("X-Weir-Refused") == bounded {
		return errBounded
	}
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || string(body) != "calm") {
		err = fmt.Errorf("answered %s: %.200s", resp.Status, body)
	}
	return err
}

func (r *run) note(took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case errors.Is(err, errBounded):
		r.bound++
	case err != nil:
		r.lost = append(r.lost, err.Error())
	case r.under:
		r.during = append(r.during, took)
	default:
		r.before = append(r.before, took)
	}
	r.grown.Broadcast()
}

func (r *run) report() report {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := report{Calls: len(r.before) + len(r.during), Lost: len(r.lost), Bounded: r.bound, Before: p99(r.before), During: p99(r.during)}
	if p.Lost > 0 {
		p.First = r.lost[0]
	}
	return p
}

func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)*99/100]
}
