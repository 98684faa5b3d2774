package proxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// turns counts from 1.
type turns struct{ n atomic.Int64 }

func (t *turns) next() int64 { return t.n.Add(1) }

// An answerer gives its answers in turn and then repeats the last one. It records the request bodies.
type answerer struct {
	answers []answer
	mu      sync.Mutex
	bodies  []string
	ids     []string
}

type answer struct {
	status int
	fields string // "Name: value", at most one
	body   string
}

func (a *answerer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	a.mu.Lock()
	now := a.answers[min(len(a.bodies), len(a.answers)-1)]
	a.bodies = append(a.bodies, string(b))
	a.ids = append(a.ids, r.Header.Get(httpx.CorrelationHeader))
	a.mu.Unlock()
	if name, value, ok := strings.Cut(now.fields, ": "); ok {
		w.Header().Set(name, value)
	}
	w.WriteHeader(now.status)
	fmt.Fprint(w, now.body)
}

func TestRetriesOnlyWhatIsSafe(t *testing.T) {
	const key = "Idempotency-Key: 1"
	down, busy, turned := answer{503, "", "down"}, answer{429, "", "busy"}, answer{503, "Retry-After: 0", "later"}
	ok := answer{200, "", "done"}
	for _, c := range []struct {
		name, method, field string
		answers             []answer
		operations          []weir.Operation
		attempts            int
		gaveUp, retry       string // X-Weir-Gave-Up and X-Should-Retry
	}{
		{name: "get", method: "GET", answers: []answer{down, ok}, attempts: 2},
		{name: "put", method: "PUT", answers: []answer{down, down, ok}, attempts: 3},
		{name: "delete", method: "DELETE", answers: []answer{down, ok}, attempts: 2},
		{name: "head", method: "HEAD", answers: []answer{down, ok}, attempts: 2},
		{name: "post", method: "POST", answers: []answer{down, ok}, attempts: 1, gaveUp: "a retry might do the work twice"},
		{name: "patch", method: "PATCH", answers: []answer{down, ok}, attempts: 1, gaveUp: "a retry might do the work twice"},
		{name: "unknown method", method: "BREW", answers: []answer{down, ok}, attempts: 1, gaveUp: "a retry might do the work twice"},
		{name: "post with a key", method: "POST", field: key, answers: []answer{down, ok}, attempts: 2},
		{name: "post with the other key", method: "POST", field: "X-" + key, answers: []answer{down, ok}, attempts: 2},
		{name: "post that is busy", method: "POST", answers: []answer{busy, ok}, attempts: 2},
		{name: "post turned away", method: "POST", answers: []answer{turned, ok}, attempts: 2},
		{name: "post, said to be safe", method: "POST", answers: []answer{down, ok}, attempts: 2,
			operations: []weir.Operation{{Name: "read", Methods: []string{"POST"}, Safe: weir.Yes}}},
		{name: "get, said not to be safe", method: "GET", answers: []answer{down, ok}, attempts: 1, gaveUp: "a retry might do the work twice",
			operations: []weir.Operation{{Name: "launch", Safe: weir.No}}},
		{name: "spent", method: "GET", answers: []answer{down}, attempts: 3, gaveUp: "attempts spent", retry: "false"},
		{name: "busy for ever", method: "POST", answers: []answer{busy}, attempts: 3, gaveUp: "attempts spent", retry: "false"},
		{name: "told not to", method: "GET", answers: []answer{{503, "X-Should-Retry: false", ""}, ok}, attempts: 1,
			gaveUp: "the upstream asked not to retry", retry: "false"},
		{name: "the caller's fault", method: "GET", answers: []answer{{404, "", "no"}, ok}, attempts: 1},
		{name: "far hint", method: "GET", answers: []answer{{429, "Retry-After: 900", "no"}, ok}, attempts: 1,
			gaveUp: "the upstream asked for a longer wait than is allowed", retry: "false"},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &answerer{answers: c.answers}
			s := httptest.NewServer(a)
			defer s.Close()
			policy := brisk()
			policy.Operations = c.operations
			address := listen(t, newProxy(t, up(s.URL, policy)))
			var fields []string
			if c.field != "" {
				fields = []string{c.field}
			}
			body := "body of " + c.name
			resp := do(t, c.method, "http://"+address+"/", body, fields...)
			got := text(t, resp)
			last := c.answers[min(c.attempts, len(c.answers))-1]
			if resp.StatusCode != last.status || c.method != "HEAD" && got != last.body {
				t.Errorf("answered %s %q, want the last answer, %+v", resp.Status, got, last)
			}
			if !slices.Equal(a.bodies, slices.Repeat([]string{body}, c.attempts)) {
				t.Errorf("the upstream got %q, want it %d times", a.bodies, c.attempts)
			}
			if n := len(slices.Compact(a.ids)); n != 1 {
				t.Errorf("%d correlation ids for one call", n)
			}
			h := resp.Header
			if h.Get(GaveUpHeader) != c.gaveUp || h.Get("X-Should-Retry") != c.retry {
				t.Errorf("gave up %q, should retry %q; want %q, %q", h.Get(GaveUpHeader), h.Get("X-Should-Retry"), c.gaveUp, c.retry)
			}
			want := fmt.Sprint(c.attempts)
			if c.attempts == 1 {
				want = ""
			}
			if h.Get(AttemptsHeader) != want {
				t.Errorf("attempts %q, want %q", h.Get(AttemptsHeader), want)
			}
			if name, value, _ := strings.Cut(last.fields, ": "); h.Get(name) != value {
				t.Errorf("%s: %q, want the upstream's own %q", name, h.Get(name), value)
			}
		})
	}
}

// A request that was never sent is retried, whatever its method.
func TestRefusedConnectionIsTriedAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := l.Addr().String()
	_ = l.Close()
	address := listen(t, newProxy(t, up("http://"+dead, brisk())))
	resp := do(t, "POST", "http://"+address+"/", "x")
	e := failureOf(t, resp)
	if resp.StatusCode != http.StatusBadGateway || e.Code != refuse.ServiceUnavailable || resp.Header.Get(AttemptsHeader) != "3" ||
		e.Details["cause"] != "connection refused" || resp.Header.Get("X-Should-Retry") != "false" || resp.Header.Get(errorHeader) == "" {
		t.Errorf("answered %s %v: %+v", resp.Status, resp.Header, e)
	}
	if strings.Contains(e.Message+fmt.Sprint(e.Details), dead) {
		t.Errorf("the answer tells the upstream's address: %+v", e)
	}
}

// cutter closes the connections of the first requests, before a response.
func cutter(cuts int64, tries *turns) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if tries.next() <= cuts {
			panic(http.ErrAbortHandler)
		}
		fmt.Fprint(w, "done")
	})
}

// After a lost response, it is unknown whether the request was executed.
func TestLostAnswer(t *testing.T) {
	for method, want := range map[string]struct{ status, tries int }{"PUT": {200, 2}, "POST": {502, 1}} {
		var tries turns
		resp := do(t, method, "http://"+before(t, cutter(1, &tries))+"/", "x")
		if n := int(tries.n.Load()); resp.StatusCode != want.status || n != want.tries {
			t.Errorf("%s: %s after %d tries, want %+v", method, resp.Status, n, want)
		}
	}
}

func TestNoAnswerInTime(t *testing.T) {
	release := make(chan bool)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(release)
	policy := brisk()
	policy.Timeouts.Attempt = 20 * time.Millisecond
	resp := do(t, "GET", "http://"+listen(t, newProxy(t, up(s.URL, policy)))+"/", "")
	if e := failureOf(t, resp); resp.StatusCode != http.StatusGatewayTimeout || e.Details["cause"] != "timeout" || e.Details["attempts"] != 3.0 {
		t.Errorf("answered %s: %+v", resp.Status, e)
	}
}

func TestBodiesAreSentAgainByteForByte(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 0))
	for _, size := range []int{1, 4095, 4096, 4097, 32 << 10, 100_000, httpx.DefaultReplay} {
		body := make([]byte, size)
		for i := range body {
			body[i] = byte(r.Uint32())
		}
		a := &answerer{answers: []answer{{503, "", ""}, {503, "", ""}, {200, "", ""}}}
		address := before(t, a)
		for _, chunked := range []bool{false, true} {
			var in io.Reader = bytes.NewReader(body)
			if chunked {
				in = io.LimitReader(in, int64(size))
			}
			req, _ := http.NewRequest("PUT", "http://"+address+"/", in)
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if text(t, resp); resp.StatusCode != http.StatusOK || len(a.bodies) != 3 {
				t.Errorf("%d bytes: %s after %d", size, resp.Status, len(a.bodies))
			}
			for i, got := range a.bodies {
				if got != string(body) {
					t.Errorf("seed %d: %d bytes: attempt %d got %d other bytes", seed, size, i+1, len(got))
				}
			}
			a.bodies = nil
		}
	}
}

func TestBodyAboveReplayIsSentOnce(t *testing.T) {
	a := &answerer{answers: []answer{{503, "", "down"}}}
	s := httptest.NewServer(a)
	defer s.Close()
	for _, c := range []struct {
		replay int64
		size   int
		tries  int
	}{{100, 100, 3}, {100, 101, 1}, {-1, 1, 1}, {-1, 0, 3}, {0, httpx.DefaultReplay + 1, 1}} {
		a.bodies = nil
		u := up(s.URL, brisk())
		u.Replay = c.replay
		resp := do(t, "PUT", "http://"+listen(t, newProxy(t, u))+"/", strings.Repeat("x", c.size))
		if got := text(t, resp); got != "down" || len(a.bodies) != c.tries {
			t.Errorf("%+v: %d tries, answer %q", c, len(a.bodies), got)
		}
		if c.tries == 1 && resp.Header.Get(GaveUpHeader) != httpx.ErrBodyTooLarge.Error() {
			t.Errorf("%+v: gave up %q", c, resp.Header.Get(GaveUpHeader))
		}
		if len(a.bodies[0]) != c.size {
			t.Errorf("%+v: the upstream got %d bytes", c, len(a.bodies[0]))
		}
	}
}

// After the first byte of a response, nothing is retried. The caller sees that the response breaks off.
func TestNothingIsRetriedAfterTheFirstByte(t *testing.T) {
	for _, length := range []string{"", "1000"} {
		var tries turns
		address := before(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			tries.next()
			if length != "" {
				w.Header().Set("Content-Length", length)
			}
			fmt.Fprint(w, "first")
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}))
		for _, client := range []*http.Client{h2c(t), {Timeout: patience}} {
			tries.n.Store(0)
			resp, err := client.Get("http://" + address + "/")
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(resp.Body)
			if string(b) != "first" || err == nil || tries.n.Load() != 1 {
				t.Errorf("%s, length %q: got %q, %v, after %d tries; want a cut after one", resp.Proto, length, b, err, tries.n.Load())
			}
		}
	}
}

// weir may read the beginning of an error response. If that breaks off, the caller's response breaks off in the same
// place.
func TestErrorAnswerThatIsCut(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) {
		rw.Header().Set("Content-Type", "application/xml")
		rw.Header().Set("Content-Length", "100")
		rw.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(rw, "<Error>")
	}))
	defer s.Close()
	resp, err := http.Get("http://" + listen(t, newProxy(t, up(s.URL, brisk()))) + "/")
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusBadRequest || string(b) != "<Error>" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %s %q, %v", resp.Status, b, err)
	}
}

// The connections of throttled attempts are reused.
func TestRetriesKeepTheirConnection(t *testing.T) {
	var conns turns
	a := &answerer{answers: []answer{{503, "", "down"}, {503, "", "down"}, {200, "", "done"}}}
	s := httptest.NewUnstartedServer(a)
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.next()
		}
	}
	s.Start()
	defer s.Close()
	do(t, "PUT", "http://"+listen(t, newProxy(t, up(s.URL, brisk())))+"/", "x")
	if n := conns.n.Load(); n != 1 {
		t.Errorf("three attempts took %d connections", n)
	}
}

func TestBreakerOpensAndSaysSo(t *testing.T) {
	a := &answerer{answers: []answer{{500, "", "broken"}}}
	s := httptest.NewServer(a)
	defer s.Close()
	policy := brisk()
	policy.Breaker = breaker.Config{Consecutive: 2, Open: time.Hour}
	address := listen(t, newProxy(t, up(s.URL, policy)))
	for range 2 { // calls with three attempts each
		resp := do(t, "GET", "http://"+address+"/", "")
		if got := text(t, resp); got != "broken" || resp.Header.Get(GaveUpHeader) != "attempts spent" {
			t.Errorf("after %d tries: %q, gave up %q", len(a.bodies), got, resp.Header.Get(GaveUpHeader))
		}
	}
	resp := do(t, "GET", "http://"+address+"/", "")
	e := failureOf(t, resp)
	if resp.StatusCode != http.StatusServiceUnavailable || e.Code != refuse.ServiceUnavailable || resp.Header.Get(RefusedHeader) != string(weir.CircuitOpen) ||
		e.Details["reason"] != string(weir.CircuitOpen) || resp.Header.Get("RateLimit") != "" || len(a.bodies) != 6 {
		t.Errorf("answered %s %v after %d tries: %+v", resp.Status, resp.Header, len(a.bodies), e)
	}
	if s := seconds(t, resp.Header.Get("Retry-After")); s < 3599 || s > 3605+1 {
		t.Errorf("retry after %v s", s)
	}
}

func TestUpstreamsAreIndependent(t *testing.T) {
	bad, good := &answerer{answers: []answer{{500, "", "broken"}}}, &answerer{answers: []answer{{200, "", "fine"}}}
	sb, sg := httptest.NewServer(bad), httptest.NewServer(good)
	defer sb.Close()
	defer sg.Close()
	policy := brisk()
	policy.Breaker = breaker.Config{Consecutive: 1, Open: time.Hour}
	b, g := up(sb.URL, policy), up(sg.URL, policy)
	b.Name, b.Routes, g.Name, g.Routes = "bad", nil, "good", nil
	address := "http://" + listen(t, newProxy(t, b, g))
	for range 5 {
		do(t, "GET", address+"/bad/", "")
		if resp := do(t, "GET", address+"/good/x", ""); resp.StatusCode != http.StatusOK || text(t, resp) != "fine" {
			t.Errorf("good answered %s", resp.Status)
		}
	}
	if len(bad.bodies) != 3 {
		t.Errorf("bad was asked %d times, want the three attempts of one call", len(bad.bodies))
	}
}
