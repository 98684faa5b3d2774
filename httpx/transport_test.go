package httpx_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// trip is a function as a base transport.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// watched is a body that records its use.
type watched struct {
	io.Reader
	closed atomic.Int32
}

func (w *watched) Close() error { w.closed.Add(1); return nil }

func body(s string) *watched { return &watched{Reader: strings.NewReader(s)} }

func response(status int, b io.ReadCloser, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status, " ", http.StatusText(status)), Header: h, Body: b, ProtoMajor: 1, ProtoMinor: 1}
}

func request(t testing.TB, ctx context.Context, method string, b io.Reader) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://upstream/path", b)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// quick is a policy with short delays between attempts, for tests in real time.
func quick() weir.Policy {
	p := steady()
	p.Retry.Base = ms
	return p
}

func TestLastAnswerComesAsItCame(t *testing.T) {
	for _, c := range []struct {
		name     string
		statuses []int
		want     int
		attempts int
		class    outcome.Class
		why      error
	}{
		{"success", []int{200}, 200, 1, outcome.OK, nil},
		{"not modified", []int{304}, 304, 1, outcome.OK, nil},
		{"rejected", []int{404}, 404, 1, outcome.Rejected, nil},
		{"retried", []int{503, 429, 200}, 200, 3, outcome.OK, nil},
		{"given up", []int{500, 502, 503}, 503, 3, outcome.Failed, retry.ErrAttempts},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				var bodies []*watched
				base := trip(func(*http.Request) (*http.Response, error) {
					bodies = append(bodies, body(fmt.Sprint("answer ", n)))
					n++
					return response(c.statuses[n-1], bodies[n-1]), nil
				})
				var story weir.Trace
				resp, err := httpx.NewTransport(open(t, steady(), weir.Options{}), base).RoundTrip(request(t, httpx.WithTrace(background, &story), "GET", nil))
				if err != nil {
					t.Fatal(err)
				}
				b, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != c.want || string(b) != fmt.Sprint("answer ", c.attempts-1) {
					t.Errorf("got %d %q", resp.StatusCode, b)
				}
				resp.Body.Close()
				for i, b := range bodies {
					rest, _ := io.ReadAll(b)
					if b.closed.Load() != 1 || len(rest) > 0 {
						t.Errorf("body %d was closed %d times, %d bytes unread", i, b.closed.Load(), len(rest))
					}
				}
				if story.Operation != "default" || story.Attempts != c.attempts || story.Outcome.Class != c.class || story.GaveUp != c.why {
					t.Errorf("story %+v", story)
				}
				if want := map[int]time.Duration{1: 0, 3: 300 * ms}[c.attempts]; story.Waited != want {
					t.Errorf("waited %v, want %v", story.Waited, want)
				}
			})
		})
	}
}

func TestErrorWithoutAnAnswerIsThatOfDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := errors.New("no route")
		u := open(t, steady(), weir.Options{})
		_, err := httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) { return nil, reset })).RoundTrip(request(t, background, "GET", nil))
		if g := gaveUp(t, err); g.Attempts != 3 || !errors.Is(err, reset) {
			t.Errorf("got %v", err)
		}
		u.Breaker("").ForceOpen(u.Now(), time.Hour)
		b := body("x")
		_, err = httpx.NewTransport(u, nil).RoundTrip(request(t, background, "PUT", b))
		if r := refusal(t, err); r.Reason != weir.CircuitOpen || b.closed.Load() != 1 {
			t.Errorf("got %v; request body closed %d times, want once", r, b.closed.Load())
		}
	})
}

// A response before a refusal is still the last response.
func TestAnswerBeforeARefusedRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var story weir.Trace
		u := open(t, steady(), weir.Options{})
		resp, err := httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
			u.Breaker("").ForceOpen(u.Now(), 0)
			return response(503, body("down")), nil
		})).RoundTrip(request(t, httpx.WithTrace(background, &story), "GET", nil))
		if err != nil || resp.StatusCode != 503 {
			t.Fatalf("got %v, %v", resp, err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "down" {
			t.Errorf("body %q", b)
		}
		if r := refusal(t, story.GaveUp); r.Reason != weir.CircuitOpen || story.Attempts != 1 {
			t.Errorf("story %+v", story)
		}
	})
}

func TestMethodsAndOperations(t *testing.T) {
	p := steady()
	p.Operations = []weir.Operation{
		{Name: "upload", Methods: []string{"PUT", "POST"}, Path: "/up"},
		{Name: "search", Path: "/find", Safe: weir.Yes},
		{Name: "danger", Methods: []string{"DELETE"}, Safe: weir.No},
	}
	for _, c := range []struct {
		method, path, header string
		operation            string
		attempts             int
	}{
		{"GET", "/x", "", "default", 3},
		{"HEAD", "/x", "", "default", 3},
		{"PUT", "/x", "", "default", 3},
		{"POST", "/x", "", "default", 1},
		{"PATCH", "/x", "", "default", 1},
		{"POST", "/x", "Idempotency-Key", "default", 3},
		{"POST", "/x", "X-Idempotency-Key", "default", 3},
		{"POST", "/x", "Cko-Idempotency-Key", "default", 3},
		{"POST", "/x", "Idempotence-Key", "default", 3},
		{"POST", "/x", "X-Idempotence-Uuid", "default", 3},
		{"POST", "/x", "X-Payout-Idempotency", "default", 3},
		{"POST", "/x", "PayPal-Request-Id", "default", 3},
		{"POST", "/x", "Repeatability-Request-ID", "default", 3},
		{"POST", "/x", "x-amzn-client-token", "default", 3},
		{"POST", "/x", "X-Request-Id", "default", 1},
		{"POST", "/x", "Request-Id", "default", 1},
		{"POST", "/x", "x-ms-client-request-id", "default", 1},
		{"POST", "/x", "X-Correlation-Id", "default", 1},
		{"POST", "/x", "X-Idempotent", "default", 1},
		{"POST", "/x", "Idempotency-Ttl", "default", 1},
		{"POST", "/x", "Idempotent-Replayed", "default", 1},
		{"POST", "/upload", "", "upload", 1},
		{"PUT", "/upload", "", "upload", 3},
		{"GET", "/upload", "", "default", 3},
		{"POST", "/find", "", "search", 3},
		{"DELETE", "/x", "", "danger", 1},
		{"PUT", "/%75pload", "", "upload", 3}, // in any encoding
		{"PUT", "//up%2560load/", "", "upload", 3},
		{"put", "/upload;a=b", "", "upload", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			tr := httpx.NewTransport(open(t, p, weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
				n++
				return response(500, body("")), nil
			}))
			var story weir.Trace
			r, _ := http.NewRequestWithContext(httpx.WithTrace(background, &story), c.method, "http://u"+c.path, nil)
			if c.header != "" {
				r.Header.Set(c.header, "1")
			}
			if _, err := tr.RoundTrip(r); err != nil {
				t.Fatal(err)
			}
			if story.Operation != c.operation || n != c.attempts {
				t.Errorf("%s %s %s: operation %s, %d attempts; want %s, %d", c.method, c.path, c.header, story.Operation, n, c.operation, c.attempts)
			}
		})
	}
}

func TestCallOfATransport(t *testing.T) {
	u := open(t, steady(scoped(rate("tenant", 1, time.Hour, 5), "tenant")), weir.Options{})
	tr := httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) { return response(200, body("")), nil }))
	tr.Call = func(r *http.Request) weir.Call {
		return weir.Call{Keys: map[string]string{"tenant": r.Header.Get("Tenant")}, Cost: map[string]int64{"requests": 2}}
	}
	r := request(t, background, "GET", nil)
	r.Header.Set("Tenant", "a")
	if _, err := tr.RoundTrip(r); err != nil || left(t, u, "tenant", "a") != 3 {
		t.Errorf("%v, %d left", err, left(t, u, "tenant", "a"))
	}
}

// S3 answers some calls with 200 before it knows the result, and reports a failure in the body.
func TestErrorInsideASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := `<?xml version="1.0"?>` + "\n" + `<Error><Code>SlowDown</Code><Message>x</Message></Error>`
		good := `<CopyObjectResult/>`
		n := 0
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return response(200, body(slow), "Content-Type", "application/xml"), nil
			}
			return response(200, body(good), "Content-Type", "application/xml"), nil
		}))
		resp, err := tr.RoundTrip(request(t, background, "PUT", nil))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != good || n != 2 {
			t.Errorf("got %q after %d attempts, want the second answer", b, n)
		}
	})
}

func TestHeadIsNotReadFor(t *testing.T) {
	n := 0
	tr := httpx.NewTransport(open(t, quick(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
		if n++; n == 1 {
			return response(503, http.NoBody), nil
		}
		return response(200, http.NoBody, "Content-Length", "7"), nil
	}))
	if resp, err := tr.RoundTrip(request(t, background, "HEAD", nil)); err != nil || resp.StatusCode != 200 || n != 2 {
		t.Errorf("got %v, %v after %d", resp, err, n)
	}
}

func TestHintOfAnAnswerIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, start := 0, clock.System.Now()
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return response(429, body(""), "Retry-After", "7"), nil
			}
			return response(200, body("")), nil
		}))
		_, err := tr.RoundTrip(request(t, background, "POST", nil))
		if took := since(start); err != nil || n != 2 || took < 7*sec || took > 8*sec {
			t.Errorf("%d attempts in %v, %v; want 2 in 7s and a little", n, took, err)
		}
	})
}

// A response that arrives just as the caller leaves must result in either a response or an error.
func TestCallerWhoLeavesWithTheAnswer(t *testing.T) {
	for _, status := range []int{200, 404, 503} {
		ctx, cancel := context.WithCancelCause(background)
		b := body("x")
		resp, err := httpx.NewTransport(open(t, quick(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			cancel(errLeft)
			return response(status, b), nil
		})).RoundTrip(request(t, ctx, "GET", nil))
		if resp != nil || err == nil || b.closed.Load() != 1 {
			t.Errorf("status %d: got %v, %v; body closed %d times", status, resp, err, b.closed.Load())
		}
	}
}

func TestAttemptTimeoutIsForHeadersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Timeouts.Attempt = sec
		hang, n := true, 0
		tr := httpx.NewTransport(open(t, p, weir.Options{}), trip(func(r *http.Request) (*http.Response, error) {
			if n++; hang && n < 3 {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}
			return response(200, &slow{ctx: r.Context(), left: 5}), nil
		}))
		resp, err := tr.RoundTrip(request(t, background, "GET", nil))
		if err != nil || n != 3 {
			t.Fatalf("got %v after %d attempts", err, n)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "....." || err != nil {
			t.Errorf("got %q, %v; want all that came in 50s", b, err)
		}
		resp.Body.Close()

		hang, n = true, -9
		_, err = tr.RoundTrip(request(t, background, "GET", nil))
		if !errors.Is(err, weir.ErrAttemptTimeout) {
			t.Errorf("got %v", err)
		}
	})
}

// slow is a body that returns a byte every 10 s while its context lasts.
type slow struct {
	ctx  context.Context
	left int
}

func (s *slow) Read(b []byte) (int, error) {
	if s.left == 0 {
		return 0, io.EOF
	}
	if err := clock.System.Sleep(s.ctx, 10*sec); err != nil {
		return 0, err
	}
	s.left--
	b[0] = '.'
	return 1, nil
}

func (s *slow) Close() error { return nil }

func TestCancelWhileReadingReachesTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, end := range map[string]func(context.CancelFunc, *http.Response){
			"cancel": func(cancel context.CancelFunc, _ *http.Response) { cancel() },
			"close":  func(_ context.CancelFunc, resp *http.Response) { resp.Body.Close() },
		} {
			var upstream context.Context
			ctx, cancel := context.WithCancel(background)
			resp, err := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(r *http.Request) (*http.Response, error) {
				upstream = r.Context()
				return response(200, &slow{ctx: r.Context(), left: 5}), nil
			})).RoundTrip(request(t, ctx, "GET", nil))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := resp.Body.Read(make([]byte, 9)); err != nil || upstream.Err() != nil {
				t.Errorf("%s: %v, %v before the end", name, err, upstream.Err())
			}
			if end(cancel, resp); upstream.Err() == nil {
				t.Errorf("%s: the upstream's context goes on", name)
			}
			cancel()
		}
	})
}

// A discarded response must not delay the next attempt, even if its body never ends.
func TestEndlessBodyOfARetriedAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, start := 0, clock.System.Now()
		resp, err := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(r *http.Request) (*http.Response, error) {
			if n++; n == 1 {
				return response(503, &slow{ctx: r.Context(), left: 1 << 30}, "Content-Type", "text/event-stream", "Content-Encoding", "br"), nil
			}
			return response(200, body("")), nil
		})).RoundTrip(request(t, background, "GET", nil))
		if err != nil || resp.StatusCode != 200 || since(start) > 5*sec {
			t.Errorf("got %v, %v after %v", resp, err, since(start))
		}
	})
}

func TestPanicInTheBaseIsReported(t *testing.T) {
	book := &ledger{}
	u := open(t, quick(), weir.Options{Gates: []weir.Gate{book}})
	func() {
		defer func() { _ = recover() }()
		_, _ = httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) { panic(1) })).RoundTrip(request(t, background, "GET", nil))
	}()
	if err := book.Check(); err != nil || book.Last != outcome.Canceled {
		t.Errorf("%v, reported %v", err, book.Last)
	}
}

func TestNestedTransportsDoNotMultiply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		inner := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			n++
			return response(503, body("")), nil
		}))
		resp, err := httpx.NewTransport(open(t, steady(), weir.Options{}), inner).RoundTrip(request(t, background, "GET", nil))
		if err != nil || resp.StatusCode != 503 || n != 3 {
			t.Errorf("got %v, %v after %d calls, want 3", resp, err, n)
		}
	})
}

// serve runs a server on the loopback and returns a client that uses weir.
func serve(t *testing.T, p weir.Policy, h http.HandlerFunc) (*http.Client, *weir.Upstream, string) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	u := open(t, p, weir.Options{})
	base := httpx.NewBase(p.WithDefaults().Timeouts, 0)
	t.Cleanup(base.CloseIdleConnections)
	return &http.Client{Transport: httpx.NewTransport(u, base)}, u, s.URL
}

func TestConnectionsAreUsedAgain(t *testing.T) {
	n := 0
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n%3 != 0 {
			w.WriteHeader(503)
		}
		_, _ = w.Write(bytes.Repeat([]byte("x"), 1000))
	}))
	var fresh atomic.Int32
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			fresh.Add(1)
		}
	}
	s.Start()
	defer s.Close()
	client := http.Client{Transport: httpx.NewTransport(open(t, quick(), weir.Options{}), nil)}
	for range 5 {
		resp, err := client.Get(s.URL)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if fresh.Load() != 1 || n != 15 {
		t.Errorf("%d connections for %d attempts, want 1 for 15", fresh.Load(), n)
	}
}

// The upstream responds while it reads: neither direction waits for the end of the other.
func TestStreamsBothWays(t *testing.T) {
	client, _, url := serve(t, quick(), func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.WriteHeader(200)
		_ = rc.Flush()
		lines := bufio.NewScanner(r.Body)
		for lines.Scan() {
			fmt.Fprintln(w, "echo", lines.Text())
			_ = rc.Flush()
		}
	})
	pr, pw := io.Pipe()
	req, _ := http.NewRequest("PUT", url, pr)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer := bufio.NewReader(resp.Body)
	for i := range 10 {
		fmt.Fprintln(pw, i)
		if line, err := answer.ReadString('\n'); line != fmt.Sprintf("echo %d\n", i) || err != nil {
			t.Fatalf("got %q, %v", line, err)
		}
	}
	pw.Close()
	if rest, err := io.ReadAll(answer); len(rest) > 0 || err != nil {
		t.Errorf("in the end %q, %v", rest, err)
	}
}

func TestUpgradedConnectionCanBeWrittenTo(t *testing.T) {
	client, _, url := serve(t, quick(), func(w http.ResponseWriter, r *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprint(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
		_ = rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprint(rw, "echo "+line)
		_ = rw.Flush()
	})
	req, _ := http.NewRequest("GET", url, nil)
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", "echo")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	rw, writable := resp.Body.(io.ReadWriteCloser)
	if resp.StatusCode != 101 || !writable {
		t.Fatalf("status %d, body %T", resp.StatusCode, resp.Body)
	}
	fmt.Fprintln(rw, "hello")
	if b, err := io.ReadAll(rw); string(b) != "echo hello\n" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestManyCallersOfOneTransport(t *testing.T) {
	var n, good atomic.Int64
	client, _, url := serve(t, quick(), func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if n.Add(1)%3 == 0 {
			w.WriteHeader(503)
		}
		_, _ = w.Write(b)
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				want := fmt.Sprint(i, "-", j)
				req, _ := http.NewRequest("PUT", url, io.NopCloser(strings.NewReader(want)))
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				b, _ := io.ReadAll(resp.Body)
				if resp.Body.Close(); string(b) != want || resp.StatusCode != 200 && resp.StatusCode != 503 {
					t.Errorf("got %d %q, want %q", resp.StatusCode, b, want)
				}
				if resp.StatusCode == 200 {
					good.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if good.Load() < 8*20*2/3 { // calls that the budget does not repeat return the failure
		t.Errorf("%d of 160 calls are good, where a third of the attempts fails", good.Load())
	}
}

func TestTwoCallsOfABrokenThingStopNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, weir.Policy{}, weir.Options{})
		client := http.Client{Transport: httpx.NewTransport(u, trip(func(r *http.Request) (*http.Response, error) {
			if r.URL.Path == "/broken" {
				return response(500, http.NoBody), nil
			}
			return response(200, http.NoBody), nil
		}))}
		get := func(path string) int {
			resp, err := client.Get("http://up.example" + path)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			return resp.StatusCode
		}
		for range 9 {
			get("/broken")
			pass(10 * sec)
		}
		if got := get("/"); got != 200 {
			t.Errorf("another caller got %d", got)
		}
	})
}

// An upstream's error is a response with any code, and never taken for an error of weir.
func TestAnErrorIsAnAnswerWhateverItsCode(t *testing.T) {
	play := func(status int, code string) (v weir.FlightView) {
		synctest.Test(t, func(t *testing.T) {
			u := open(t, weir.Policy{Concurrency: weir.Concurrency{Auto: true}}, weir.Options{})
			tr := &httpx.Transport{Upstream: u, Base: trip(func(*http.Request) (*http.Response, error) {
				time.Sleep(30 * time.Millisecond)
				return response(status, body(`{"error":{"code":"`+code+`"}}`), "Content-Type", "application/json"), nil
			})}
			for range 4 {
				resp, err := tr.RoundTrip(request(t, background, "POST", nil))
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			v = flights(t, u)
		})
		return v
	}
	for _, status := range []int{400, 409, 500, 504} {
		want := play(status, "whatever")
		for _, code := range []string{"request body", "timeout", "DEADLINE_EXCEEDED", "call timeout"} {
			if got := play(status, code); got != want || got.InFlight > 0 {
				t.Errorf("%d %q: %+v, want %+v", status, code, got, want)
			}
		}
	}
}

func TestNegativeTimeoutsBoundNothing(t *testing.T) {
	base := httpx.NewBase(weir.Timeouts{Connect: -1, TLS: -1, Headers: -1}, 0)
	if base.TLSHandshakeTimeout != 0 || base.ResponseHeaderTimeout != 0 || base.MaxIdleConns != 256 {
		t.Errorf("transport %+v", base)
	}
}
