package httpx_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/httpx"
)

// A wire is a base transport whose responses the test provides.
type wire struct {
	sent chan *wired
}

type wired struct {
	req    *http.Request
	answer chan *http.Response
	ended  atomic.Bool // its context has ended
}

func newWire() *wire { return &wire{sent: make(chan *wired, 100)} }

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	a := &wired{req: req, answer: make(chan *http.Response, 1)}
	if t := httptrace.ContextClientTrace(req.Context()); t != nil && t.WroteRequest != nil {
		t.WroteRequest(httptrace.WroteRequestInfo{})
	}
	w.sent <- a
	select {
	case resp := <-a.answer:
		return resp, nil
	case <-req.Context().Done():
		a.ended.Store(true)
		return nil, req.Context().Err()
	}
}

// A watchedBody records that it was closed.
type watchedBody struct {
	io.Reader
	closed atomic.Bool
}

func (b *watchedBody) Close() error { b.closed.Store(true); return nil }

func (a *wired) give(status int) *watchedBody {
	b := &watchedBody{Reader: strings.NewReader("body")}
	a.answer <- &http.Response{StatusCode: status, Header: http.Header{}, Body: b, Request: a.req}
	synctest.Wait()
	return b
}

// leaver sends a request whose caller leaves after a second.
func leaver(t *testing.T, tr *httpx.Transport, method string, body io.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(background, sec)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, method, "http://api/x", body)
	start := clock.System.Now()
	if resp, err := tr.RoundTrip(req); resp != nil || err == nil || since(start) != sec {
		t.Errorf("got %v, %v after %v", resp, err, since(start))
	}
	synctest.Wait()
}

func wired2(t *testing.T, p weir.Policy) (*weir.Upstream, *httpx.Transport, *wire) {
	t.Helper()
	u, w := open(t, p, weir.Options{}), newWire()
	return u, httpx.NewTransport(u, w), w
}

func patientPolicy() weir.Policy {
	return with(bounded(3), func(p *weir.Policy) {
		p.Timeouts = weir.Timeouts{Headers: time.Hour, Attempt: time.Hour, Call: time.Hour}
	})
}

func TestTheAnswerToALeaverIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, tr, w := wired2(t, patientPolicy())
		leaver(t, tr, http.MethodGet, nil)
		leaver(t, tr, http.MethodGet, nil)
		first, second := <-w.sent, <-w.sent
		if f := flights(t, u); f.InFlight != 2 || f.Held != 2 || first.ended.Load() || second.ended.Load() {
			t.Fatalf("%+v, ended %v %v, want two that go on", f, first.ended.Load(), second.ended.Load())
		}
		b := second.give(200)
		if f := flights(t, u); f.InFlight != 0 || f.Held != 0 || !b.closed.Load() || !first.ended.Load() {
			t.Errorf("after the answer to the second: %+v, its body closed %v, the first ended %v", f, b.closed.Load(), first.ended.Load())
		}
	})
}

func TestAnAttemptThatTakesTooLongGoesOnUnheard(t *testing.T) {
	for name, c := range map[string]weir.Timeouts{
		"attempt": {Headers: time.Hour, Attempt: sec, Call: time.Hour},
		"call":    {Headers: time.Hour, Attempt: time.Hour, Call: sec},
		"headers": {Headers: sec, Attempt: time.Hour, Call: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := patientPolicy()
				p.Timeouts, p.Retry.Attempts = c, 1
				u, tr, w := wired2(t, p)
				ctx, cancel := context.WithCancel(background)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/x", nil)
				start := clock.System.Now()
				_, err := tr.RoundTrip(req)
				if !errors.Is(err, context.DeadlineExceeded) || since(start) != sec {
					t.Errorf("%v after %v", err, since(start))
				}
				synctest.Wait()
				a := <-w.sent
				if f := flights(t, u); f.Held != 1 || a.ended.Load() {
					t.Errorf("%+v, ended %v, want it to go on", f, a.ended.Load())
				}
				a.give(200)
				if f := flights(t, u); f.InFlight != 0 {
					t.Errorf("after its answer: %+v", f)
				}
			})
		})
	}
}

func TestALeaverEndsItsAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		method string
		body   io.Reader
		policy weir.Policy
		later  bool
	}{
		"that is not safe":             {http.MethodPost, nil, patientPolicy(), false},
		"that has a body":              {http.MethodPut, strings.NewReader("x"), patientPolicy(), false},
		"without a bound":              {http.MethodGet, nil, steady(), false},
		"when a later one is answered": {http.MethodGet, nil, patientPolicy(), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, tr, w := wired2(t, c.policy)
				if c.later {
					time.AfterFunc(500*ms, func() {
						req, _ := http.NewRequest(http.MethodGet, "http://api/x", nil)
						resp, err := tr.RoundTrip(req)
						if err != nil {
							t.Error(err)
							return
						}
						_ = resp.Body.Close()
					})
					time.AfterFunc(600*ms, func() {
						first, second := <-w.sent, <-w.sent
						second.give(200)
						w.sent <- first
					})
				}
				leaver(t, tr, c.method, c.body)
				if a := <-w.sent; !a.ended.Load() {
					t.Error("it goes on")
				}
			})
		})
	}
}

func TestAnErrandEndsAfterHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, tr, w := wired2(t, patientPolicy())
		leaver(t, tr, http.MethodGet, nil)
		a := <-w.sent
		pass(30*sec - 1)
		if synctest.Wait(); a.ended.Load() {
			t.Error("it ended early")
		}
		pass(1)
		if synctest.Wait(); !a.ended.Load() {
			t.Error("it goes on")
		}
		_ = u
	})
}

// The first good response after a stall ends the wait for a probe. A failure does not, nor does it end another kind of open time.
func TestTheAnswerToALeaverWakesTheBreaker(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		force  time.Duration
		wakes  bool
	}{
		"good": {200, 0, true}, "the caller's fault": {404, 0, true}, "bad": {503, 0, false}, "by hand": {200, time.Hour, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := patientPolicy()
				p.Breaker = breaker.Config{Failures: 1, Open: time.Minute}
				p.Retry.Attempts = 1
				u, tr, w := wired2(t, p)
				leaver(t, tr, http.MethodGet, nil)
				a := <-w.sent
				if c.force > 0 {
					u.Breaker("").ForceOpen(u.Now(), c.force)
				} else {
					q, _ := try(u, weir.Call{})
					q.Report(errUnsent.O) // counts for the breaker, and is not a response
				}
				if v := u.Look(0).Breakers[0]; v.Phase != breaker.Open || v.Wait == 0 {
					t.Fatalf("the breaker is %v", v)
				}
				a.give(c.status)
				if v := u.Look(0).Breakers[0]; (v.Wait == 0) != c.wakes {
					t.Errorf("waits %v more, want woken %v", v.Wait, c.wakes)
				}
			})
		})
	}
}

func TestAStreamThatHasBegunEndsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, tr, w := wired2(t, patientPolicy())
		ctx, cancel := context.WithCancel(background)
		req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/x", nil)
		time.AfterFunc(sec, func() {
			a := <-w.sent
			a.answer <- &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body")), Request: a.req}
			w.sent <- a
		})
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		if f := flights(t, u); f.InFlight != 0 {
			t.Errorf("while it is read: %+v", f)
		}
		a := <-w.sent
		if cancel(); a.req.Context().Err() != nil {
			synctest.Wait()
		}
		synctest.Wait()
		if a.req.Context().Err() == nil {
			t.Error("it goes on when its caller has left")
		}
		_ = resp.Body.Close()
	})
}

func TestAPanicOfTheBaseIsTheCallers(t *testing.T) {
	u := open(t, patientPolicy(), weir.Options{})
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	req, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://api/x", nil)
	defer func() {
		if v := recover(); v != "broken" {
			t.Errorf("recovered %v", v)
		}
		if f := flights(t, u); f.InFlight != f.Held {
			t.Errorf("it looks like %+v", f)
		}
	}()
	_, _ = httpx.NewTransport(u, roundTrip(func(*http.Request) (*http.Response, error) { panic("broken") })).RoundTrip(req)
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// The base does not apply the header timeout if Transport does.
func TestBaseTimeouts(t *testing.T) {
	if d := httpx.BaseTimeouts(weir.Policy{}).Headers; d != 5*sec {
		t.Errorf("without a bound the base waits %v", d)
	}
	for _, p := range []weir.Policy{bounded(1), {Operations: []weir.Operation{{Name: "x", Concurrency: &weir.Concurrency{Auto: true}}}}} {
		if d := httpx.BaseTimeouts(p).Headers; d >= 0 {
			t.Errorf("with a bound the base waits %v", d)
		}
	}
}
