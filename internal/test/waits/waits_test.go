// Package waits tests every wait of a call through the released sidecar with every event that may end it: which caller gets a
// response, when, and with which headers.
package waits

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

const (
	ms  = time.Millisecond
	sec = time.Second

	// event is the time from the start of a wait to the event. It differs from all times of internal checks.
	event = 510 * ms
)

// An api responds as configured, and holds calls on request.
type api struct {
	mu     sync.Mutex
	status int
	header map[string]string
	hold   chan struct{}
	calls  int
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.calls++
	status, header, hold := a.status, a.header, a.hold
	a.mu.Unlock()
	if hold != nil {
		select {
		case <-hold:
		case <-r.Context().Done():
			return
		}
	}
	for k, v := range header {
		w.Header().Set(k, v)
	}
	w.WriteHeader(status)
}

func (a *api) answers(status int, header map[string]string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.status, a.header = status, header
}

// A scene is a sidecar in front of an api.
type scene struct {
	t     *testing.T
	api   *api
	proxy *proxy.Proxy
	u     *weir.Upstream
	url   string
	by    *http.Transport
	fleet *fleet.Fleet
}

func (s *scene) load(yaml string) []proxy.Upstream {
	file, err := config.Parse("weir.yaml", fmt.Appendf(nil, "upstreams:\n  api:\n    url: %s\n%s", s.url, yaml), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return file.Upstreams
}

func play(t *testing.T, yaml string, shared bool, do func(*scene)) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		s := &scene{t: t, api: &api{status: http.StatusOK}, by: n.Transport()}
		s.url = n.Serve("api.test", s.api)
		upstreams := s.load(yaml)
		upstreams[0].Dial = n.Dial
		var o weir.Options
		if shared {
			s.fleet = fleet.New(fleet.NewMemory(nil), fleet.Options{})
			s.fleet.Start()
			o.Fleet = s.fleet
		}
		p, err := proxy.New(upstreams, o)
		if err != nil {
			t.Fatal(err)
		}
		s.proxy, s.u = p, p.Upstreams()["api"]
		n.Serve("weir.test", p)
		if shared {
			time.Sleep(3 * sec)
		}
		do(s)
		if shared {
			s.u.Close()
			_ = s.fleet.Close(context.Background())
		}
	})
}

// An end is a caller's result.
type end struct {
	after   time.Duration
	status  int // 0 if it has disconnected
	retry   time.Duration
	refused string
	gaveUp  string
}

func (s *scene) call(ctx context.Context, user string) (e end) {
	begin := time.Now()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://weir.test/api/x", nil)
	r.Host = "localhost"
	r.Header.Set("X-User", user)
	resp, err := s.by.RoundTrip(r)
	e.after = time.Since(begin)
	if err != nil {
		return e
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	h := resp.Header
	n, _ := strconv.Atoi(h.Get("Retry-After-Ms"))
	return end{e.after, resp.StatusCode, time.Duration(n) * ms, h.Get(proxy.RefusedHeader), h.Get(proxy.GaveUpHeader)}
}

// A wait is a way in which a call starts to wait.
type wait struct {
	name   string
	yaml   string
	raised string // the same with a higher limit; "" without one
	fleet  bool
	begin  func(*scene)
	turn   time.Duration // minimum time until it proceeds
	paused bool          // it waits for the end of a pause
	tried  bool          // it has made an attempt before
	until  time.Duration // maximum wait, after which it is refused before its turn
}

func waits() []wait {
	first := func(s *scene) {
		if e := s.call(context.Background(), "first"); e.status != 200 {
			s.t.Fatalf("the first call: %+v", e)
		}
	}
	held := func(s *scene) {
		s.api.mu.Lock()
		s.api.hold = make(chan struct{})
		s.api.mu.Unlock()
		go s.call(context.Background(), "first")
		synctest.Wait()
	}
	const one, two = "    limits: {all: {rate: 6/min, burst: 1}}\n", "    limits: {all: {rate: 300/min, burst: 10}}\n"
	const far = "    limits: {all: {rate: 60000/min, burst: 1000}}\n" // more than 64 times as fast
	const rolling, more = "    limits: {all: {rate: 2/min, shape: rolling}}\n", "    limits: {all: {rate: 20/min, shape: rolling}}\n"
	const quota, days = "    limits: {all: {amount: 1, every: day}}\n", "    max_wait: 30h\n    timeouts: {call: 30h}\n"
	const fair = "    fair: {by: user}\n    keys: {user: 'header:X-User'}\n"
	const long, longer = "    max_wait: 20s\n", "    max_wait: 2m\n    timeouts: {call: 2m}\n"
	pausedBy := func(of pause.Subject) func(*scene) {
		return func(s *scene) {
			if err := s.u.Pause(of, 10*sec, false); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	answers := func(status int, header map[string]string) func(*scene) {
		return func(s *scene) { s.api.answers(status, header) }
	}
	after := map[string]string{"Retry-After": "10"}
	return []wait{
		{name: "a limit's line", yaml: one + long, raised: two + long, begin: first, turn: 9 * sec},
		{name: "a limit's line, raised by far", yaml: one + long, raised: far + long, begin: first, turn: 9 * sec},
		{name: "a fair line, raised by far", yaml: one + fair + long, raised: far + fair + long, begin: first, turn: 9 * sec},
		{name: "a shared limit, raised by far", yaml: one + long, raised: far + long, begin: first, turn: 9 * sec, fleet: true},
		{name: "a rolling limit", yaml: rolling + longer, raised: more + longer, begin: func(s *scene) { first(s); first(s) }, turn: 59 * sec},
		{name: "a quota", yaml: quota + days, raised: "    limits: {all: {amount: 2, every: day}}\n" + days, begin: first, turn: 23 * time.Hour},
		{name: "a fair line", yaml: one + fair + long, raised: two + fair + long, begin: first, turn: 9 * sec},
		{name: "a shared limit", yaml: one + long, raised: two + long, begin: first, turn: 9 * sec, fleet: true},
		{name: "a slot", yaml: "    concurrency: 1\n" + long, raised: "    concurrency: 2\n" + long, begin: held, until: sec},
		{name: "a slot, no bound after that", yaml: "    concurrency: 1\n" + long, raised: "    concurrency: off\n" + long, begin: held, until: sec},
		{name: "a pause of all", yaml: long, begin: pausedBy(pause.All()), turn: 9 * sec, paused: true},
		{name: "a pause of a limit", yaml: two + long, begin: pausedBy(pause.OfLimits("all")), turn: 9 * sec, paused: true},
		{name: "a pause of a shared limit", yaml: two + long, begin: pausedBy(pause.OfLimits("all")), turn: 9 * sec, paused: true, fleet: true},
		{name: "a pause, in line", yaml: two + fair + long, begin: pausedBy(pause.OfLimits("all")), turn: 9 * sec, paused: true},
		{name: "a retry", yaml: "    retry: {base: 10s, jitter: none}\n", begin: answers(503, nil), turn: 9 * sec, tried: true},
		{name: "a retry as asked", yaml: "", begin: answers(429, after), turn: 9 * sec, paused: true, tried: true},
		{name: "a retry as asked, with a limit", yaml: two, begin: answers(429, after), turn: 9 * sec, paused: true, tried: true},
		{name: "a retry as asked, in a fleet", yaml: two, begin: answers(429, after), turn: 9 * sec, paused: true, tried: true, fleet: true},
		{name: "a retry as asked, for longer than a pause", yaml: "    max_pause: 5s\n", begin: answers(429, after), turn: 9 * sec, paused: true, tried: true},
		{name: "a retry after a failure, as asked", yaml: "", begin: answers(500, after), turn: 9 * sec, tried: true},
	}
}

// waiting causes an event 510 ms after a call began to wait, and returns the call's result.
func (w wait) waiting(t *testing.T, happens func(*scene, context.CancelFunc)) (e end) {
	play(t, w.yaml, w.fleet, func(s *scene) {
		w.begin(s)
		ctx, leave := context.WithCancel(context.Background())
		defer leave()
		time.AfterFunc(event, func() {
			s.api.answers(http.StatusOK, nil)
			happens(s, leave)
		})
		e = s.call(ctx, "second")
		time.Sleep(ms) // until the sidecar has noticed the disconnect
		s.api.mu.Lock()
		if s.api.hold != nil {
			close(s.api.hold)
			s.api.hold = nil
		}
		s.api.mu.Unlock()
		time.Sleep(40 * sec)
	})
	return e
}

// at reports whether a time is the event's, or later by at most late.
func at(d, late time.Duration) bool { return d >= event && d <= event+late }

// A retry continues to wait if only a part of its pauses, or another pause, is resumed.
func TestALiftOfAnotherPauseIsNotHeard(t *testing.T) {
	for _, w := range waits() {
		if !w.tried {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			e := w.waiting(t, func(s *scene, _ context.CancelFunc) {
				if err := s.u.Pause(pause.OfPool("another"), sec, false); err != nil {
					t.Error(err)
				}
				if err := s.u.Pause(pause.All(), 2*sec, false); err != nil {
					t.Error(err)
				}
				if _, err := s.u.Resume(pause.OfPool("another"), false); err != nil {
					t.Error(err)
				}
			})
			if e.status != 200 || e.after < w.turn {
				t.Errorf("%+v, want 200 in its turn", e)
			}
		})
	}
}

// All waiting calls are refused immediately when the breaker opens, with its duration. A call with an earlier attempt gets the
// upstream's last response with the same headers.
func TestAllHearThatTheBreakerHasOpened(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			e := w.waiting(t, func(s *scene, _ context.CancelFunc) { s.u.Breaker("").ForceOpen(s.u.Now(), 30*sec) })
			if !at(e.after, ms) || e.refused != string(weir.CircuitOpen) || e.retry < 30*sec || e.retry > 33*sec {
				t.Errorf("%+v, want circuit_open for 30 s, at once", e)
			}
			if w.tried != (e.gaveUp == string(weir.CircuitOpen)) || !w.tried && e.status != 503 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// If the breaker is open before the wait, the wait does not begin.
func TestNoRetryWaitsForABreakerThatIsOpen(t *testing.T) {
	for _, w := range waits() {
		if !w.tried {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			play(t, w.yaml, w.fleet, func(s *scene) {
				w.begin(s)
				hold := make(chan struct{})
				s.api.hold = hold
				time.AfterFunc(event, func() {
					s.u.Breaker("").ForceOpen(s.u.Now(), 30*sec)
					close(hold)
				})
				if e := s.call(context.Background(), "it"); !at(e.after, ms) || e.refused != string(weir.CircuitOpen) || e.retry < 30*sec {
					t.Errorf("%+v, want circuit_open at once", e)
				}
				time.Sleep(40 * sec)
			})
		})
	}
}

// Calls that wait for the end of a pause proceed immediately when it is resumed. A retry whose upstream requested the wait
// proceeds after its delay. Other calls proceed at their time.
func TestAllHearThatAPauseIsLifted(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			e := w.waiting(t, func(s *scene, _ context.CancelFunc) {
				n, err := s.u.Resume(pause.All(), false)
				if err != nil || w.paused != (n > 0) {
					t.Errorf("lifted %d, %v", n, err)
				}
			})
			late := 150 * ms
			switch {
			case w.paused && (e.status != 200 || !at(e.after, late)):
				t.Errorf("%+v, want 200 at once", e)
			case !w.paused && w.turn > 0 && (e.status != 200 || e.after < w.turn):
				t.Errorf("%+v, want 200 in its turn", e)
			}
		})
	}
}

// Raising a limit lets its waiting calls proceed.
func TestAllHearThatALimitIsRaised(t *testing.T) {
	for _, w := range waits() {
		if w.raised == "" {
			continue
		}
		t.Run(w.name, func(t *testing.T) {
			e := w.waiting(t, func(s *scene, _ context.CancelFunc) {
				s.api.mu.Lock()
				s.api.hold = nil // for later calls
				s.api.mu.Unlock()
				if err := s.proxy.Set(s.load(w.raised)); err != nil {
					t.Error(err)
				}
			})
			late := 400 * ms // at the higher limit of 5 a second
			if e.status != 200 || !at(e.after, late) {
				t.Errorf("%+v, want 200 at once", e)
			}
		})
	}
}

// A call that disconnects leaves the queue and is not sent.
func TestWhoLeavesWaitsNoLonger(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			calls := -1
			e := w.waiting(t, func(s *scene, leave context.CancelFunc) {
				calls = s.api.calls
				leave()
				time.AfterFunc(20*sec, func() { calls -= s.api.calls })
			})
			if e.status != 0 || !at(e.after, ms) || calls != 0 {
				t.Errorf("%+v, and %d calls after that", e, -calls)
			}
		})
	}
}

// When the sidecar stops, waiting calls are refused immediately and directed elsewhere. A call with an earlier attempt gets the
// upstream's last response with the same headers. Calls in flight continue.
func TestAllHearThatTheSidecarStops(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			e := w.waiting(t, func(s *scene, _ context.CancelFunc) { s.u.Drain() })
			its := w.tried && e.retry == 0 // the upstream's, which is longer
			if !at(e.after, ms) || e.refused != string(weir.ShuttingDown) || !its && (e.retry < sec || e.retry > 2*sec) {
				t.Errorf("%+v, want shutting_down, at once", e)
			}
			if w.tried != (e.gaveUp == string(weir.ShuttingDown)) || !w.tried && e.status != 503 {
				t.Errorf("%+v", e)
			}
		})
	}
}

// After that no wait begins. A call that need not wait proceeds.
func TestNoWaitBeginsWhileTheSidecarStops(t *testing.T) {
	for _, w := range waits() {
		t.Run(w.name, func(t *testing.T) {
			play(t, w.yaml, w.fleet, func(s *scene) {
				w.begin(s)
				s.u.Drain()
				if e := s.call(context.Background(), "second"); e.after > 200*ms || e.refused != string(weir.ShuttingDown) {
					t.Errorf("%+v, want shutting_down, at once", e)
				}
				s.api.mu.Lock()
				if s.api.hold != nil {
					close(s.api.hold)
					s.api.hold = nil
				}
				s.api.mu.Unlock()
				s.api.answers(http.StatusOK, nil)
				time.Sleep(w.turn + w.turn/10 + 20*sec)
				if e := s.call(context.Background(), "third"); e.status != 200 {
					t.Errorf("%+v, want 200", e)
				}
			})
		})
	}
}
