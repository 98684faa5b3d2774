package designs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/serve"
)

// A situation is the fault from second 20 to second 40 of a minute.
type situation string

const (
	calm      situation = "calm"
	throttled situation = "throttled" // the upstream refuses calls for their rate
	down      situation = "down"      // the upstream answers with errors
	away      situation = "store away"
)

const (
	minute     = time.Minute
	faultBegin = 20 * time.Second
	faultEnd   = 40 * time.Second
	settle     = time.Second // until the processes know each other
)

// A played is a design with its fake and its load.
type played struct {
	name    string // of the file in examples/designs
	store   bool   // its processes share a store
	weirs   int
	workers int           // of each weir
	every   time.Duration // minimum time between the starts of a worker's calls
	host    string        // of the upstream
	fake    func(s situation) http.Handler
	call    func(base string, n int) *http.Request

	// delivered returns the times until delivery, if calls are accepted and delivered later; nil if not.
	delivered func() []time.Duration
}

// fault reports whether the fault of a run that began at begin is active.
func fault(begin time.Time) bool {
	d := time.Since(begin)
	return d >= faultBegin && d < faultEnd
}

// An outage is a store that does not respond while it is away.
type outage struct {
	fleet.Store
	away atomic.Bool
}

var errNoStore = errors.New("the store does not respond")

func (o *outage) Take(ctx context.Context, a *fleet.Ask) error {
	if o.away.Load() {
		return errNoStore
	}
	return o.Store.Take(ctx, a)
}

func (o *outage) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if o.away.Load() {
		return fleet.Standing{}, errNoStore
	}
	return o.Store.Beat(ctx, b)
}

func (o *outage) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if o.away.Load() {
		return nil, time.Time{}, errNoStore
	}
	return o.Store.Load(ctx, group, names)
}

func (o *outage) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if o.away.Load() {
		return fleet.Record{}, false, errNoStore
	}
	return o.Store.Swap(ctx, group, r)
}

// Close leaves the store to the other processes of the play.
func (o *outage) Close() error { return nil }

// secret is the environment of a simulated weir.
func secret(name string) (string, bool) {
	return "0123456789abcdef0123456789abcdef", name == "HASH_SECRET" || name == "GEMINI_API_KEY"
}

// fileOf returns the file of a design for an in-memory weir: upstreams without TLS, a store and deliveries on this machine, and
// without receivers of metrics, traces and messages, tokens, and upstreams with another role.
func fileOf(t *testing.T, p played, listen string) string {
	t.Helper()
	text, err := os.ReadFile("../../../examples/designs/" + p.name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if (file["store"] != nil) != p.store {
		t.Errorf("%s.yaml has the store %v", p.name, file["store"])
	}
	for _, outside := range []string{"cloudwatch", "notify", "traces", "jwt", "decide"} {
		delete(file, outside)
	}
	file["listen"], file["admin"] = listen, "off"
	if p.store {
		file["store"] = map[string]any{"memory": true}
	}
	if p.delivered != nil {
		file["deliveries"] = map[string]any{"file": filepath.Join(t.TempDir(), "deliveries.db")}
	}
	upstreams, _ := file["upstreams"].(map[string]any)
	for name, u := range upstreams {
		fields, _ := u.(map[string]any)
		if aws, _ := fields["aws"].(map[string]any); aws["role"] != nil {
			delete(upstreams, name)
			continue
		}
		fields["url"] = "http://" + p.host
		delete(fields, "jobs")
	}
	if model, ok := upstreams["bedrock"].(map[string]any); ok { // a table of answers becomes a file
		answers := filepath.Join(t.TempDir(), "answers.yaml")
		if err := os.WriteFile(answers, []byte("answers:\n  - keywords: [opening hours]\n    answer: From nine to five.\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		tiers := model["llm"].(map[string]any)["cascade"].(map[string]any)["tiers"].([]any)
		for _, tier := range tiers {
			if fields := tier.(map[string]any); fields["answers"] != nil {
				fields["answers"] = answers
			}
		}
	}
	whole, err := yaml.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(whole)
}

// deadLetters is a log handler that counts dead letters.
type deadLetters struct{ atomic.Int64 }

func (d *deadLetters) Write(line []byte) (int, error) {
	var said struct {
		Msg    string
		Number int64
	}
	if json.Unmarshal(line, &said) == nil && said.Msg == "deliveries became dead letters" {
		d.Add(said.Number)
	}
	return len(line), nil
}

// A counter is a fake that counts its requests.
type counter struct {
	http.Handler
	sent, refused atomic.Int64
}

func (c *counter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.sent.Add(1)
	s := &status{ResponseWriter: w}
	c.Handler.ServeHTTP(s, r)
	if s.code == http.StatusTooManyRequests || s.code == http.StatusServiceUnavailable {
		c.refused.Add(1)
	}
}

type status struct {
	http.ResponseWriter
	code int
}

func (s *status) WriteHeader(code int) {
	s.code = code
	s.ResponseWriter.WriteHeader(code)
}

func (s *status) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// A result has the results of the calls of a minute.
type result struct {
	calls, answered, refused int
	dead                     int             // deliveries that became dead letters
	times                    []time.Duration // of answered calls, in order
	sent, throttled          int64           // requests at the upstream
	tiers                    map[string]int  // of language models
}

// percentile is 0 if no call was answered.
func (r result) percentile(p int) time.Duration {
	if len(r.times) == 0 {
		return 0
	}
	return r.times[(len(r.times)*p-1)/100]
}

// judge reports results that no design accepts.
func (r result) judge(t *testing.T, p played, s situation) {
	if s == calm && (p.name != "bucket" && r.answered < r.calls || r.throttled > 0) || s == away && r.throttled > 0 {
		t.Errorf("%d of %d calls were answered, %d of %d requests were throttled", r.answered, r.calls, r.throttled, r.sent)
	}
	switch models := r.tiers["primary"] + r.tiers["secondary"]; p.name {
	case "chat":
		if most := 3 * time.Second; s != down && r.percentile(99) >= most || s != down && models < r.calls {
			t.Errorf("p99 %v, %v of %d calls; want an answer of a model within %v", r.percentile(99), r.tiers, r.calls, most)
		}
		if r.answered*100 < r.calls*99 {
			t.Errorf("%d of %d calls were answered; want 99%%", r.answered, r.calls)
		}
		if most := 5 * time.Second; r.percentile(99) > most {
			t.Errorf("p99 %v, want at most %v", r.percentile(99), most)
		}
	case "drs":
		// The delays between six attempts add up to 15.5 to 46.5 s, so a call that begins with an outage of 20 s may fail.
		if s != down && r.answered < r.calls || r.answered*100 < r.calls*98 {
			t.Errorf("%d of %d calls were answered", r.answered, r.calls)
		}
	case "messaging":
		if r.answered+r.dead < r.calls {
			t.Errorf("of %d messages, %d were delivered and %d are dead letters", r.calls, r.answered, r.dead)
		}
	}
}

// play simulates a situation for a minute of virtual time.
func play(t *testing.T, p played, s situation) (r result) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		c := &counter{Handler: p.fake(s)}
		n.Serve(p.host, c)
		shared := fleet.NewMemory(nil)
		store := &outage{Store: shared}
		var ended []chan error
		dead := new(deadLetters)
		ctx, stop := context.WithCancel(context.Background())
		for _, host := range []string{"localhost", "127.0.0.1"}[:p.weirs] {
			file := filepath.Join(t.TempDir(), "weir.yaml")
			if err := os.WriteFile(file, []byte(fileOf(t, p, host+":80")), 0o600); err != nil {
				t.Fatal(err)
			}
			w, err := serve.New(file, serve.Options{
				Log: dead, Env: secret, Listen: n.Hear, Dial: n.Dial, Store: func(fleet.Store) fleet.Store { return store },
			})
			if err != nil {
				t.Fatal(err)
			}
			end := make(chan error, 1)
			go func() { end <- w.Run(ctx, nil, nil) }()
			ended = append(ended, end)
		}
		time.Sleep(settle)
		if s == away {
			time.AfterFunc(faultBegin, func() { store.away.Store(true) })
			time.AfterFunc(faultEnd, func() { store.away.Store(false) })
		}
		r = p.load(t, n)
		stop()
		for _, end := range ended {
			if err := <-end; err != nil {
				t.Error(err)
			}
		}
		r.sent, r.throttled, r.dead = c.sent.Load(), c.refused.Load(), int(dead.Load())
		time.Sleep(10 * time.Second) // for goroutines that wait for the store
	})
	return r
}

// load makes the calls of a minute. A design that delivers later has the times until delivery in its result.
func (p played) load(t *testing.T, n *memnet.Network) result {
	client := &http.Client{Transport: n.Transport()}
	begin := time.Now()
	var mu sync.Mutex
	var wg sync.WaitGroup
	r, workers := result{tiers: make(map[string]int)}, p.weirs*p.workers
	for worker := range workers {
		base := "http://" + []string{"localhost", "127.0.0.1"}[worker%p.weirs]
		wg.Go(func() {
			time.Sleep(time.Duration(worker) * p.every / time.Duration(workers))
			for n := worker; time.Since(begin) < minute; n += workers { // a call has the same number however long others take
				start := time.Now()
				resp, err := client.Do(p.call(base, n))
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				took := time.Since(start)
				mu.Lock()
				r.calls++
				if resp.StatusCode < 300 {
					r.answered++
					r.times = append(r.times, took)
				} else if resp.Header.Get("X-Weir-Refused") != "" {
					r.refused++
				}
				if tier := resp.Header.Get(gateway.TierHeader); tier != "" {
					r.tiers[tier]++
				}
				mu.Unlock()
				time.Sleep(p.every - took)
			}
		})
	}
	wg.Wait()
	if p.delivered != nil {
		time.Sleep(5 * minute)
		r.times = p.delivered()
		r.answered = len(r.times)
	}
	slices.Sort(r.times)
	return r
}

func (r result) row(p played, s situation) string {
	share := func(n int) string { return fmt.Sprintf("%.1f%%", 100*float64(n)/float64(max(r.calls, 1))) }
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }
	note := "none"
	if r.sent > 0 && r.throttled > 0 {
		note = fmt.Sprintf("%.1f%%", 100*float64(r.throttled)/float64(r.sent))
	}
	var more []string
	for _, tier := range []string{"secondary", "cached", "static", "message"} {
		if n := r.tiers[tier]; n > 0 {
			more = append(more, fmt.Sprintf("%s %s", share(n), tier))
		}
	}
	if r.dead > 0 {
		more = append(more, share(r.dead)+" dead letters")
	}
	return fmt.Sprintf("| %s | %s | %d | %s | %s | %s | %s | %d | %s | %s |", p.name, s, r.calls, share(r.answered), share(r.refused),
		seconds(r.percentile(50)), seconds(r.percentile(99)), r.sent, note, cmp.Or(strings.Join(more, ", "), "none"))
}

var update = flag.Bool("update", false, "write the figures of the page")

// designs are fresh fakes and loads, for one play.
var designs = []func() played{drs, bucketed, messaging, chat, s3}

const (
	page  = "../../../examples/designs/README.md"
	begin = "<!-- figures: begin; make designs writes them -->\n"
	end   = "<!-- figures: end -->\n"
)

// Each file of examples/designs is simulated for a minute in each situation. With -update the page gets the figures.
func TestDesignsArePlayed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"} {
		t.Setenv(name, value)
	}
	table := "| design | situation | calls | answered | refused | p50 | p99 | requests | throttled | fallback |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
	for _, design := range designs {
		for _, s := range []situation{calm, throttled, down, away} {
			p := design()
			if s == away && !p.store {
				continue
			}
			t.Run(p.name+"/"+string(s), func(t *testing.T) {
				r := play(t, p, s)
				t.Log(r.row(p, s), r.tiers)
				table += r.row(p, s) + "\n"
				r.judge(t, p, s)
			})
		}
	}
	if *update && !t.Failed() {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(string(text), begin)
		_, after, ok := strings.Cut(rest, end)
		if !ok {
			t.Fatalf("%s has no place for the figures", page)
		}
		if err := os.WriteFile(page, []byte(before+begin+"\n"+table+"\n"+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
