package decide

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// policy has a limit of each kind: five requests a second, 100 tokens a minute, and two calls an hour for each
// tenant.
func policy() weir.Policy {
	return weir.Policy{
		Limits: []limit.Limit{
			{Name: "calls", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 5}},
			{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 100, Per: time.Minute, Burst: 100}},
			{Name: "per-tenant", Scope: "tenant", Operations: []string{"put"}, Rate: bucket.Rate{Amount: 2, Per: time.Hour, Burst: 2}},
		},
		Breaker: breaker.Config{Failures: 3, Open: 10 * time.Second, Successes: 1},
	}
}

func upstream(t testing.TB, name string, p weir.Policy, gates ...weir.Gate) *weir.Upstream {
	t.Helper()
	u, err := weir.New(name, p, weir.Options{Gates: gates})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// server returns a server of the upstreams, closed at the test's end.
func server(t testing.TB, us ...*weir.Upstream) *Server {
	byName := make(map[string]*weir.Upstream)
	for _, u := range us {
		byName[u.Name()] = u
	}
	s := &Server{Upstreams: func() map[string]*weir.Upstream { return byName }}
	t.Cleanup(s.Close)
	return s
}

// An answer is a response with its JSON body.
type answer struct {
	*httptest.ResponseRecorder `json:"-"`
	Permit                     string
	ExpiresAt                  time.Time `json:"expires_at"`
	WaitedMS                   int64     `json:"waited_ms"`
	Limits                     []limitView
	Error                      struct {
		Code    string
		Message string
		Details struct {
			Upstream, Operation, Reason, Limit, Key string
			RetryAfterMS                            int64     `json:"retry_after_ms"`
			ResetAt                                 time.Time `json:"reset_at"`
			Limits                                  []limitView
			Fields                                  []mistake
		}
	}
}

func (a *answer) says(code, text string) bool {
	return a.Error.Code == code && strings.Contains(a.Error.Message, text)
}

// ask sends a request, with headers ("Name: value"). Every response must match the OpenAPI file.
func ask(t testing.TB, h http.Handler, method, target, body string, header ...string) *answer {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	r.Host = "localhost"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range header {
		name, value, _ := strings.Cut(f, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	return deliver(t, h, r, body)
}

func deliver(t testing.TB, h http.Handler, r *http.Request, body string) *answer {
	t.Helper()
	a := &answer{ResponseRecorder: httptest.NewRecorder()}
	h.ServeHTTP(a, r)
	conforms(t, r, body, a)
	if strings.HasPrefix(a.Header().Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(a.Body.Bytes(), a); err != nil {
			t.Fatalf("%s %s: an answer that is no JSON: %v: %q", r.Method, r.URL, err, a.Body)
		}
	}
	return a
}

func acquire(t testing.TB, h http.Handler, body string, header ...string) *answer {
	t.Helper()
	return ask(t, h, "POST", "/v1/acquire", body, header...)
}

func report(t testing.TB, h http.Handler, body string, header ...string) *answer {
	t.Helper()
	return ask(t, h, "POST", "/v1/report", body, header...)
}

// permit returns the id of a permit that must be granted.
func permit(t testing.TB, h http.Handler, body string, header ...string) string {
	t.Helper()
	a := acquire(t, h, body, header...)
	if a.Code != 200 {
		t.Fatalf("acquire %s: got %d %s, want 200", body, a.Code, a.Body)
	}
	return a.Permit
}

// left returns the remaining units of a limit.
func left(t testing.TB, u *weir.Upstream, name, key string) int64 {
	t.Helper()
	for _, v := range u.Look(10).Limits {
		if v.Limit.Name == name && v.Key == key {
			return v.Level.Left
		}
	}
	t.Fatalf("%s has no limit %s with key %q", u.Name(), name, key)
	return 0
}

// state returns the state of the upstream's breaker.
func state(u *weir.Upstream) breaker.Phase { return u.Look(0).Breakers[0].Phase }

// A tally counts events.
type tally struct {
	mu sync.Mutex
	by map[string]int
}

func (c *tally) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[name]++
}

func (c *tally) want(t testing.TB, want map[string]int) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !maps.Equal(c.by, want) {
		t.Errorf("events: got %v, want %v", c.by, want)
	}
}

func (c *tally) events() Events {
	return Events{
		Acquired: func(Acquired) { c.add("acquired") },
		Refused:  func(e Refused) { c.add("refused " + string(e.Reason)) },
		Reported: func(e Reported) { c.add("reported " + e.Class.String()) },
		Expired:  func(Expired) { c.add("expired") },
	}
}

// serve is like ask without the slow validation against the OpenAPI file.
func serve(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("POST", path, strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// granted returns the id of the permit in a response.
func granted(t testing.TB, body io.Reader) string {
	var a struct{ Permit string }
	if err := json.NewDecoder(body).Decode(&a); err != nil || a.Permit == "" {
		t.Errorf("no permit: %v", err)
	}
	return a.Permit
}
