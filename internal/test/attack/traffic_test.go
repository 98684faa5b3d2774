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

// calmTraffic names the environment variable that has this program be a process of calm traffic.
const calmTraffic = "CALM_TRAFFIC"

// Calm traffic: so many callers that each ask every so often, and so many calls before an
// attack and during it at least.
const (
	callers = 2
	pause   = 10 * time.Millisecond
	fewest  = 150
)

// An errand is where calm traffic goes, and what fields its requests have.
type errand struct {
	URL    string
	Fields []string
}

// A report is how it went.
type report struct {
	Calls, Lost    int
	Bounded        int           // refused by the bound of what is in flight; not among Lost
	First          string        // what the first that was lost was lost with
	Before, During time.Duration // p99
}

// callCalmly is the process: it says where its upstream is, then runs errand after errand. Of each it reports
// when enough calls were made before the attack, and when it is over.
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

// A run is an errand under way.
type run struct {
	errand

	mu     sync.Mutex
	before []time.Duration
	during []time.Duration
	lost   []string
	bound  int  // how many the bound of what is in flight refused
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

// errBounded is that weir had as much in flight as the answers said that the upstream bears. How much that is goes by
// how fast this machine answers.
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
