package serve

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A staleAPI is an upstream that responds with the number of the request. Its fields control the response.
type staleAPI struct {
	mu      sync.Mutex
	n       int
	status  int // 0 means 200
	retry   bool
	hang    bool
	cut     bool
	chunked bool
	slow    time.Duration // delay before each part of a chunked body
	size    int           // size of the rest of the body
	header  http.Header
}

func (a *staleAPI) set(change func(*staleAPI)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

func (a *staleAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	a.n++
	n, status, retry, hang, cut, chunked, slow, size := a.n, a.status, a.retry, a.hang, a.cut, a.chunked, a.slow, a.size
	for name, values := range a.header {
		w.Header()[name] = values
	}
	a.mu.Unlock()
	switch {
	case hang:
		<-r.Context().Done()
		return
	case status != 0:
		if retry {
			w.Header().Set("Retry-After", "1")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, "failure")
		return
	}
	body := fmt.Sprint("answer ", n) + strings.Repeat(".", size)
	if !chunked {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	if r.Method == http.MethodHead {
		return
	}
	_, _ = io.WriteString(w, body[:4])
	if cut {
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	if slow > 0 {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-time.After(slow):
		case <-r.Context().Done():
			return
		}
	}
	_, _ = io.WriteString(w, body[4:])
}

// A staleDesk makes calls to a staleAPI through weir.
type staleDesk struct {
	t      *testing.T
	api    *staleAPI
	client *http.Client
}

// staleFile stores answers for 10 minutes. Retries and the breaker are quick, so that failures need little time.
const staleFile = `admin: 127.0.0.1:81
upstreams:
  api:
    url: http://api.test
    stale_if_error: 10m
    retry: {attempts: 2, base: 1ms, cap: 1ms}
    timeouts: {attempt: 2s, call: 3s, idle: 2s}
    max_wait: 1s
`

// atStaleDesk runs a test with a staleDesk in virtual time. more contains further lines of the upstream.
func atStaleDesk(t *testing.T, more string, test func(d *staleDesk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		api := &staleAPI{header: http.Header{}}
		n.Serve("api.test", api)
		defer serveInside(t, n, staleFile+more)()
		test(&staleDesk{t, api, &http.Client{Transport: n.Transport()}})
	})
}

// ask makes a request with header lines and returns the response with its body. "!" marks a body that breaks off.
func (d *staleDesk) ask(method, path string, lines ...string) (*http.Response, string) {
	d.t.Helper()
	q, err := http.NewRequest(method, "http://localhost/api"+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ": ")
		q.Header.Add(name, value)
	}
	resp, err := d.client.Do(q)
	if err != nil {
		return &http.Response{Header: http.Header{}}, "!"
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		b = append(b, '!')
	}
	return resp, string(b)
}

// get is ask for /x. It returns the body of a stored answer in brackets.
func (d *staleDesk) get(lines ...string) string {
	d.t.Helper()
	resp, body := d.ask(http.MethodGet, "/x", lines...)
	if resp.Header.Get("X-Weir-Cache") == "old" {
		return "[" + body + "]"
	}
	return body
}

func (d *staleDesk) want(got, want string) {
	d.t.Helper()
	if got != want {
		d.t.Errorf("got %.80q, want %q", got, want)
	}
}

func TestFailedGetIsAnsweredWithTheLastGoodAnswer(t *testing.T) {
	for name, fail := range map[string]func(*staleAPI){
		"500":          func(a *staleAPI) { a.status = 500 },
		"503":          func(a *staleAPI) { a.status = 503 },
		"429":          func(a *staleAPI) { a.status, a.retry = 429, true },
		"timeout":      func(a *staleAPI) { a.hang = true },
		"cut":          func(a *staleAPI) { a.cut = true },
		"cut, chunked": func(a *staleAPI) { a.cut, a.chunked = true, true },
		"silent body":  func(a *staleAPI) { a.slow = time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			atStaleDesk(t, "", func(d *staleDesk) {
				d.want(d.get(), "answer 1")
				time.Sleep(time.Minute)
				d.want(d.get(), "answer 2") // the upstream works and is called
				d.api.set(fail)
				time.Sleep(5 * time.Minute)
				resp, body := d.ask(http.MethodGet, "/x")
				h := resp.Header
				age, _ := strconv.Atoi(h.Get("Age"))
				if resp.StatusCode != 200 || body != "answer 2" || h.Get("X-Weir-Cache") != "old" || h.Get("X-Weir-Degraded") != "true" || age < 300 || age > 310 || h.Get("Warning") != "" || h.Get("Retry-After") != "" {
					t.Errorf("status %d, body %q, headers %v", resp.StatusCode, body, h)
				}
				time.Sleep(5*time.Minute + time.Second)
				if got := d.get(); strings.HasPrefix(got, "[") {
					t.Errorf("got %q after 10 minutes", got)
				}
			})
		})
	}
}

func TestOpenBreakerIsAnsweredWithTheLastGoodAnswer(t *testing.T) {
	atStaleDesk(t, "    breaker: {consecutive: 2, open: 1h}\n", func(d *staleDesk) {
		d.want(d.get(), "answer 1")
		d.api.set(func(a *staleAPI) { a.status = 500 })
		for range 4 {
			d.want(d.get(), "[answer 1]")
		}
		d.api.mu.Lock()
		made := d.api.n
		d.api.mu.Unlock()
		resp, body := d.ask(http.MethodGet, "/x")
		if d.api.n != made || body != "answer 1" || resp.Header.Get("X-Weir-Gave-Up") != "circuit_open" {
			t.Errorf("%d requests while the breaker is open, body %q, headers %v", d.api.n-made, body, resp.Header)
		}
		if resp, _ := d.ask(http.MethodGet, "/other"); resp.StatusCode != 503 {
			t.Errorf("status %d for what was never answered", resp.StatusCode)
		}
		text := d.admin("/v1/why/" + resp.Header.Get("X-Correlation-Id"))
		if !strings.Contains(text, `"stale_ms":`) {
			t.Errorf("why: %s", text)
		}
		metrics := d.admin("/metrics")
		for _, want := range []string{`weir_stale_answers_total{cause="refused",upstream="api"} `, `weir_stale_answers_total{cause="failed",upstream="api"} `} {
			if !strings.Contains(metrics, want) {
				t.Errorf("no %s", want)
			}
		}
	})
}

func (d *staleDesk) admin(path string) string {
	d.t.Helper()
	resp, err := d.client.Get("http://127.0.0.1:81" + path)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

func TestCallRefusedByALimitIsAnsweredWithTheLastGoodAnswer(t *testing.T) {
	atStaleDesk(t, "    limits: {all: {rate: 1/h, burst: 1}}\n", func(d *staleDesk) {
		d.want(d.get(), "answer 1")
		d.want(d.get(), "[answer 1]")
	})
}

func TestEarlierAnswerStaysWithItsRequest(t *testing.T) {
	atStaleDesk(t, "    keys: {user: \"header:X-User\"}\n    breaker: off\n", func(d *staleDesk) {
		d.api.set(func(a *staleAPI) { a.header.Set("Vary", "X-Flavor") })
		d.want(d.get("Authorization: Bearer alice-secret"), "answer 1")
		d.want(d.get("X-User: carol"), "answer 2")
		d.want(d.get("X-Flavor: salty"), "answer 3")
		d.want(d.get("Cookie: session=s1-secret"), "answer 4")
		d.want(d.get("Accept: text/html"), "answer 5")
		d.api.set(func(a *staleAPI) { a.status = 500 })
		d.want(d.get("Authorization: Bearer alice-secret"), "[answer 1]")
		d.want(d.get("X-User: carol"), "[answer 2]")
		d.want(d.get("X-Flavor: salty"), "[answer 3]")
		d.want(d.get("Cookie: session=s1-secret"), "[answer 4]")
		d.want(d.get("Accept: text/html"), "[answer 5]")
		for _, lines := range [][]string{
			nil, {"Authorization: Bearer bob-secret"}, {"X-User: dave"}, {"X-Flavor: sweet"}, {"Cookie: session=s2-secret"},
			{"Authorization: Bearer alice-secret", "X-Flavor: salty"}, {"Accept: text/plain"},
			{"X-Flavor: salty", "Range: bytes=0-3"}, {"X-Flavor: salty", "If-Match: a"}, {"X-Flavor: salty", "Cache-Control: no-cache"}, {"X-Flavor: salty", "Pragma: no-cache"},
		} {
			d.want(d.get(lines...), "failure")
		}
		for _, of := range [][2]string{{"POST", "/x"}, {"HEAD", "/x"}, {"GET", "/x?a=b"}, {"GET", "/y"}} {
			if resp, _ := d.ask(of[0], of[1], "X-Flavor: salty"); resp.StatusCode != 500 {
				t.Errorf("%s: status %d", of, resp.StatusCode)
			}
		}
	})
}

func TestAnswerIsKeptForErrorsOnlyWhereAllowed(t *testing.T) {
	const secret = "Authorization: Bearer alice-secret"
	for name, c := range map[string]struct {
		header  string
		size    int
		chunked bool
		slow    time.Duration
		lines   []string
		more    string
		kept    bool
	}{
		"no-store":                           {header: "Cache-Control: max-age=60, no-store", lines: []string{secret}},
		"no-cache":                           {header: "Cache-Control: no-cache", lines: []string{secret}},
		"must-revalidate":                    {header: "Cache-Control: must-revalidate", lines: []string{secret}},
		"stale-if-error=0":                   {header: "Cache-Control: stale-if-error=0"},
		"stale-if-error=60":                  {header: "Cache-Control: stale-if-error=60", kept: true},
		"no-store in the request":            {lines: []string{"Cache-Control: no-store"}},
		"private":                            {header: "Cache-Control: private"},
		"private, with a credential":         {header: "Cache-Control: private", lines: []string{secret}, kept: true},
		"s-maxage":                           {header: "Cache-Control: s-maxage=5"},
		"a cookie":                           {header: "Set-Cookie: a=b"},
		"a cookie, with a credential":        {header: "Set-Cookie: a=b", lines: []string{secret}, kept: true},
		"any Vary":                           {header: "Vary: Accept, *"},
		"a part":                             {header: "Content-Range: bytes 0-7/100"},
		"events":                             {header: "Content-Type: text/event-stream"},
		"1 MB":                               {size: 1_000_000, kept: true},
		"1 MB, chunked":                      {size: 1_000_000, chunked: true, kept: true},
		"2 MB":                               {size: 2_000_000},
		"2 MB, chunked":                      {size: 2_000_000, chunked: true},
		"a stream":                           {chunked: true, slow: 1500 * time.Millisecond},
		"weir's credential":                  {more: "    credentials: {Authorization: UP_KEY}\n"},
		"weir's credential, public":          {header: "Cache-Control: public", more: "    credentials: {Authorization: UP_KEY}\n", kept: true},
		"weir's credential and the cookie's": {lines: []string{"Cookie: session=s1-secret"}, more: "    credentials: {Authorization: UP_KEY}\n", kept: true},
	} {
		t.Run(name, func(t *testing.T) {
			atStaleDesk(t, c.more, func(d *staleDesk) {
				field, value, _ := strings.Cut(c.header, ": ")
				d.api.set(func(a *staleAPI) {
					if a.size, a.chunked, a.slow = c.size, c.chunked, c.slow; field != "" {
						a.header.Set(field, value)
					}
				})
				lines := c.lines
				if got := d.get(lines...); !strings.HasPrefix(got, "answer 1") || len(got) != 8+c.size {
					t.Fatalf("got %.80q", got)
				}
				if name == "no-store in the request" {
					lines = nil
				}
				d.api.set(func(a *staleAPI) { a.status = 500 })
				if got := d.get(lines...); strings.HasPrefix(got, "[answer 1") != c.kept {
					t.Errorf("got %.80q, want an earlier answer: %v", got, c.kept)
				}
				time.Sleep(2 * time.Minute)
				if got := d.get(lines...); strings.HasPrefix(got, "[") != (c.kept && name != "stale-if-error=60") {
					t.Errorf("got %.80q after 2 minutes", got)
				}
			})
		})
	}
}

func TestHeadIsAnsweredWithTheLastGoodAnswer(t *testing.T) {
	atStaleDesk(t, "", func(d *staleDesk) {
		d.ask(http.MethodHead, "/x")
		d.api.set(func(a *staleAPI) { a.status = 500 })
		resp, body := d.ask(http.MethodHead, "/x")
		if resp.StatusCode != 200 || body != "" || resp.ContentLength != 8 || resp.Header.Get("X-Weir-Cache") != "old" {
			t.Errorf("status %d, body %q of %d, headers %v", resp.StatusCode, body, resp.ContentLength, resp.Header)
		}
	})
}

// An earlier answer would claim that the action succeeded again.
func TestGetWithActionIsNotAnsweredWithTheLastGoodAnswer(t *testing.T) {
	atStaleDesk(t, "", func(d *staleDesk) {
		for query, want := range map[string]int{"Action=Publish": 500, "Action=ListTopics": 200} {
			time.Sleep(time.Minute) // an action ends earlier answers of its path
			d.api.set(func(a *staleAPI) { a.status = 0 })
			d.ask(http.MethodGet, "/x?"+query)
			d.api.set(func(a *staleAPI) { a.status = 500 })
			if resp, body := d.ask(http.MethodGet, "/x?"+query); resp.StatusCode != want {
				t.Errorf("?%s: status %d, want %d, body %q", query, resp.StatusCode, want, body)
			}
		}
	})
}

// A stream is passed on as it arrives, also if a stored answer exists.
func TestStreamIsNotHeldForAnEarlierAnswer(t *testing.T) {
	atStaleDesk(t, "", func(d *staleDesk) {
		d.want(d.get(), "answer 1")
		d.api.set(func(a *staleAPI) {
			a.header.Set("Content-Type", "text/event-stream")
			a.chunked, a.slow = true, time.Second
		})
		begin := time.Now()
		resp, err := d.client.Get("http://localhost/api/x")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 4)
		if _, err := io.ReadFull(resp.Body, b); err != nil || time.Since(begin) > 100*time.Millisecond {
			t.Errorf("%q after %v, %v", b, time.Since(begin), err)
		}
	})
}

// A stored answer is not used after a later write, or after the upstream refused the caller.
func TestEarlierAnswerEndsWithAWriteOrARefusal(t *testing.T) {
	for name, change := range map[string]func(d *staleDesk){
		"PUT": func(d *staleDesk) { d.ask(http.MethodPut, "/x") },
		"PUT that failed": func(d *staleDesk) {
			d.api.set(func(a *staleAPI) { a.status = 500 })
			d.ask(http.MethodPut, "/x")
		},
		"403": func(d *staleDesk) {
			d.api.set(func(a *staleAPI) { a.status = 403 })
			d.get()
		},
		"404": func(d *staleDesk) {
			d.api.set(func(a *staleAPI) { a.status = 404 })
			d.get()
		},
	} {
		t.Run(name, func(t *testing.T) {
			atStaleDesk(t, "", func(d *staleDesk) {
				d.want(d.get(), "answer 1")
				time.Sleep(time.Second)
				change(d)
				d.api.set(func(a *staleAPI) { a.status = 500 })
				d.want(d.get(), "failure")
			})
		})
	}
}

// The caches of stored answers are limited in bytes.
func TestEarlierAnswersAreBounded(t *testing.T) {
	atStaleDesk(t, "", func(d *staleDesk) {
		d.api.set(func(a *staleAPI) { a.size = 1_000_000 })
		for i := range 70 {
			d.ask(http.MethodGet, fmt.Sprint("/", i))
		}
		d.api.set(func(a *staleAPI) { a.status = 500 })
		kept := 0
		for i := range 70 {
			if resp, _ := d.ask(http.MethodGet, fmt.Sprint("/", i)); resp.StatusCode == 200 {
				kept++
			}
		}
		if kept < 40 || kept*1_000_000 > 64<<20 {
			t.Errorf("%d answers of 1 MB are kept, want 40, and at most 64 MiB", kept)
		}
	})
}
