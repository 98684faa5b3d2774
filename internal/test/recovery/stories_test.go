package recovery_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/sidecar/config"
)

var inRealTime = flag.Bool("real", false, "play the stories also in real time, through weir serve")

// realFile is a usual file whose limit many callers share.
const realFile = `upstreams:
  api:
    url: %s
    preset: http
    concurrency: auto
    keys: {tenant: "header:X-Tenant"}
    fair: {by: tenant}
    limits: {all: {rate: 100/s, burst: 20}}
    max_wait: 500ms
store: {redis: %q}
`

// A real run has the same callers and machine as a simulated one, and real time, HTTP, weir serve and Redis.
// Figures agree within 10 points: shares of the calls, and the time to recover as a share of the story.
func TestStoriesAgreeWithRealTime(t *testing.T) {
	if !*inRealTime {
		return
	}
	parsed, err := config.Parse("weir.yaml", fmt.Appendf(nil, realFile, "http://upstream.test", "redis://store.test"), nil)
	if err != nil {
		t.Fatal(err)
	}
	target := &play.Target{Name: "api", Policy: parsed.Upstreams[0].Policy, Store: &play.Store{Latency: time.Millisecond}}
	all, _ := target.Stories()
	if len(all) != 6 {
		t.Fatalf("%d stories", len(all))
	}
	for i := range all {
		t.Run(all[i].Name, func(t *testing.T) {
			s, _, err := target.Complete(all[i])
			if err != nil {
				t.Fatal(err)
			}
			if s.Troubles[0].Kind == play.Flood { // the machine throttles the callers without weir
				s.Machine.Limit = target.Policy.Limits[0].Rate
			}
			t.Run("direct", func(t *testing.T) {
				t.Parallel()
				agree(t, &s, nil, nil)
			})
			t.Run("weir", func(t *testing.T) {
				t.Parallel()
				agree(t, &s, &target.Policy, target.Store)
			})
		})
	}
}

// agree plays a story in both times and compares the figures. The policy is nil for direct calls.
func agree(t *testing.T, s *play.Story, policy *weir.Policy, store *play.Store) {
	const seed, points = 1, 0.10
	virtual, err := s.Play(t.Context(), seed, policy, store)
	if err != nil {
		t.Fatal(err)
	}
	actual := playReal(t, s, seed, policy == nil)
	for _, f := range []struct {
		name         string
		virtual, was float64
	}{
		{"answered", virtual.Answered, actual.Answered},
		{"answered before the trouble", virtual.Before, actual.Before},
		{"answered after the trouble", virtual.After, actual.After},
		{"attempts sent, of the simulated ones", 1, float64(actual.Sent) / float64(virtual.Sent)},
		{"throttled", float64(virtual.Throttled) / float64(max(1, virtual.Sent)), float64(actual.Throttled) / float64(max(1, actual.Sent))},
		{"time to recover", recovery(s, virtual), recovery(s, actual)},
	} {
		t.Logf("%s: simulated %.3f, real %.3f", f.name, f.virtual, f.was)
		if math.Abs(f.virtual-f.was) > points {
			t.Errorf("%s: %s: simulated %.3f, real %.3f", s.Title, f.name, f.virtual, f.was)
		}
	}
}

// recovery returns the time to recover as a share of the story, or 1 if it does not recover.
func recovery(s *play.Story, x *play.Score) float64 {
	if x.RecoveredMS == nil {
		return 1
	}
	return float64(*x.RecoveredMS) / float64(s.Length.Milliseconds())
}

// playReal plays a story in real time, directly or through as many weir serve as it has processes.
func playReal(t *testing.T, s *play.Story, seed uint64, direct bool) *play.Score {
	var machine *play.Machine
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w, r, machine) }))
	defer upstream.Close()
	urls := []string{upstream.URL}
	var redis *servers.Server
	if !direct {
		redis = servers.Redis(t)
		urls = make([]string, max(1, s.Processes))
		var file string
		for i := range urls {
			p := served.Start(t, "listen: 127.0.0.1:0\nadmin: off\n"+fmt.Sprintf(realFile, upstream.URL, redis.URL()))
			urls[i], file = "http://"+p.Serve.Listen+"/api/", p.File
		}
		init := exec.Command(served.Binary(t), "store", "init", "-config", file)
		if out, err := init.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		time.Sleep(2 * time.Second) // until all processes know each other and the initialized store
	}
	start := clock.System.Now()
	machine = play.NewMachine(clock.System, rand.New(rand.NewPCG(seed, 9)), s)
	for i := range s.Troubles {
		if x := &s.Troubles[i]; x.Kind == play.StoreAway && !direct {
			time.AfterFunc(x.From, redis.Stop)
			time.AfterFunc(x.To, redis.Cont)
		}
	}
	log := play.NewLog(s, machine)
	web := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 2000}}
	defer web.CloseIdleConnections()
	var calls sync.WaitGroup
	keys := newKeys(s)
	for i, name := range play.Tenants {
		var next atomic.Int64
		c := &play.Client{Clock: clock.System, Kind: s.Callers.Client, Patience: s.Callers.Patience, Send: func(ctx context.Context, q play.Request) play.Reply {
			return send(ctx, web, urls[(i+int(next.Add(1)))%len(urls)], q)
		}}
		calls.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for at := s.Next(random, 0, i); at < s.Length; at += s.Next(random, at, i) {
				_ = clock.System.Sleep(context.Background(), start+at-clock.System.Now())
				key := keys(random)
				call := log.Begin(i, at)
				calls.Go(func() {
					ok := c.Call(context.Background(), play.Request{Tenant: name, Key: key})
					log.End(call, clock.System.Now()-start-at, ok)
				})
			}
		})
	}
	calls.Wait()
	return log.Score()
}

// newKeys returns a function that chooses the key of a call as a simulated story does.
func newKeys(s *play.Story) func(*rand.Rand) int {
	var mu sync.Mutex
	n := 0
	return func(r *rand.Rand) int {
		mu.Lock()
		defer mu.Unlock()
		k := s.Machine.Keys
		if n++; k.Count == 0 || k.InTurn {
			return n - 1
		}
		return r.IntN(k.Count)
	}
}

// answer makes a call at the machine and writes the response.
func answer(w http.ResponseWriter, r *http.Request, m *play.Machine) {
	key, _ := strconv.Atoi(r.Header.Get("X-Lease"))
	err := m.Call(r.Context(), key)
	said, _ := errors.AsType[outcome.Classifier](err)
	switch {
	case err == nil:
		_, _ = io.WriteString(w, "hello\n")
	case said != nil && said.Outcome().Class == outcome.Throttled:
		w.Header().Set("Retry-After-Ms", strconv.FormatInt(said.Outcome().Hint.After.Milliseconds()+1, 10))
		w.WriteHeader(http.StatusTooManyRequests)
	default:
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// send makes an attempt over HTTP.
func send(ctx context.Context, web *http.Client, url string, q play.Request) play.Reply {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return play.Reply{Final: true}
	}
	r.Header.Set("X-Tenant", q.Tenant)
	r.Header.Set("X-Lease", strconv.Itoa(q.Key))
	resp, err := web.Do(r)
	if err != nil {
		return play.Reply{}
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	ms, _ := strconv.ParseInt(resp.Header.Get("Retry-After-Ms"), 10, 64)
	s, _ := strconv.ParseInt(resp.Header.Get("Retry-After"), 10, 64)
	return play.Reply{
		OK:    err == nil && resp.StatusCode == http.StatusOK,
		Final: resp.Header.Get("X-Should-Retry") == "false",
		After: time.Duration(cmp.Or(ms, s*1000)) * time.Millisecond,
	}
}
