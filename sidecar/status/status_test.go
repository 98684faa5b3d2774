package status

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func upstream(t testing.TB, name string, p weir.Policy) *weir.Upstream {
	t.Helper()
	u, err := weir.New(name, p, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func page(t testing.TB, us ...*weir.Upstream) *Page {
	byName := make(map[string]*weir.Upstream)
	for _, u := range us {
		byName[u.Name()] = u
	}
	return &Page{
		Version: "v1.2.3", Started: time.Now(), Upstreams: func() map[string]*weir.Upstream { return byName },
		Metrics: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "# metrics\n") }),
	}
}

func ask(h http.Handler, method, target, body string, fields ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	r.Host = "localhost"
	for _, f := range fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func TestHandler(t *testing.T) {
	const order = `{"upstream":"s3","do":"open"}`
	for _, c := range []struct {
		method, target, body string
		fields               []string
		status               int
		says                 string
	}{
		{"GET", "/healthz", "", nil, 200, "ok\n"},
		{"HEAD", "/healthz", "", nil, 200, ""},
		{"GET", "/readyz", "", nil, 200, "ready\n"},
		{"GET", "/metrics", "", nil, 200, "# metrics\n"},
		{"GET", "/v1/status", "", nil, 200, `"version": "v1.2.3"`},
		{"POST", "/v1/status", "", nil, 405, ""},
		{"GET", "/v1/breaker", "", nil, 405, ""},
		{"GET", "/", "", nil, 404, ""},
		{"GET", "/healthz/x", "", nil, 404, ""},
		{"POST", "/v1/breaker", order, nil, 200, `"state":"open"`},
		{"POST", "/v1/breaker", order, []string{"Sec-Fetch-Site: same-origin"}, 200, ""},
		{"POST", "/v1/breaker", order, []string{"Sec-Fetch-Site: cross-site"}, 403, `"code":"FORBIDDEN"`},
		{"POST", "/v1/breaker", order, []string{"Origin: https://evil.example"}, 403, "another site"},
		{"POST", "/v1/breaker", order, []string{"Origin: https://evil.example", "Sec-Fetch-Site: same-origin"}, 403, "another site"},
		{"POST", "/v1/breaker", "", nil, 400, "the body is not a command"},
		{"POST", "/v1/breaker", "{", nil, 400, "the body is not a command"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"open","when":"now"}`, nil, 400, "when"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"open"}` + `{"upstream":"s3","do":"close"}`, nil, 400, "more than one JSON value"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"` + strings.Repeat("x", 5<<10) + `"}`, nil, 400, "too large"},
		{"POST", "/v1/breaker", `{"upstream":"else","do":"open"}`, nil, 404, `unknown upstream`},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"explode"}`, nil, 400, "want open, close or reset"},
		{"POST", "/v1/breaker", `{"upstream":"s3"}`, nil, 400, "want open, close or reset"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"open","for":"soon"}`, nil, 400, "want a duration"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"open","for":"-5m"}`, nil, 400, "want a duration"},
		{"POST", "/v1/breaker", `{"upstream":"s3","do":"open","for":"0s"}`, nil, 400, "want a duration"},
	} {
		w := ask(page(t, upstream(t, "s3", weir.Policy{})).Handler(), c.method, c.target, c.body, c.fields...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %.60s %v: %d %s, want %d with %q", c.method, c.target, c.body, c.fields, w.Code, w.Body, c.status, c.says)
		}
		if strings.HasPrefix(c.target, "/v1/breaker") && (w.Code == 400 || w.Code == 404) {
			var e struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Code == "" || e.Error.Message == "" {
				t.Errorf("%s: the error is %s", c.body, w.Body)
			}
		}
	}
}

// A page under a name that was pointed at a loopback address has the same origin as the admin listener. It can
// neither read nor change anything.
func TestOtherHostsAreRefused(t *testing.T) {
	u := upstream(t, "s3", weir.Policy{})
	p := page(t, u)
	p.Hosts = func() []string { return []string{"Weir.Local:8081"} }
	h := p.Handler()
	from := func(host string, local net.Addr, method, target, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Host = host
		r.Header.Set("Origin", "http://"+host)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local)))
		return w
	}
	loopback := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8081}
	for _, what := range []string{"POST /v1/breaker", "GET /v1/status", "GET /metrics", "GET /healthz", "GET /readyz", "GET /"} {
		method, target, _ := strings.Cut(what, " ")
		for _, host := range []string{"evil.example", "evil.example:8081", "localhost.evil.example", "127.0.0.1.evil.example:8081", "x.weir.local", ""} {
			w := from(host, loopback, method, target, `{"upstream":"s3","do":"open"}`)
			var e struct {
				Error struct{ Code, Message string }
			}
			if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || w.Code != http.StatusMisdirectedRequest || e.Error.Code != "VALIDATION_ERROR" || !strings.Contains(e.Error.Message, fmt.Sprintf("%q", host)) {
				t.Errorf("%s of %q: %d %s, %v; want 421", what, host, w.Code, w.Body, err)
			}
		}
	}
	if v := u.Look(0).Breakers; len(v) > 0 && v[0].Phase != breaker.Closed {
		t.Errorf("the breaker is %v", v[0].Phase)
	}
	for _, host := range []string{"localhost:8081", "127.0.0.1:8081", "[::1]:8081", "weir.local:8081", "WEIR.LOCAL"} {
		if w := from(host, loopback, "POST", "/v1/breaker", `{"upstream":"s3","do":"reset"}`); w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", host, w.Code, w.Body)
		}
	}
	if w := from("weir.internal:8081", &net.TCPAddr{IP: net.IPv4(10, 0, 0, 7)}, "GET", "/metrics", ""); w.Code != http.StatusOK {
		t.Errorf("where others reach it: %d %s", w.Code, w.Body)
	}
}

func TestNotReadyWhileDraining(t *testing.T) {
	p := page(t)
	p.Draining.Store(true)
	if w := ask(p.Handler(), "GET", "/readyz", ""); w.Code != http.StatusServiceUnavailable {
		t.Errorf("answered %d", w.Code)
	}
	if w := ask(p.Handler(), "GET", "/healthz", ""); w.Code != http.StatusOK {
		t.Errorf("alive, but answered %d", w.Code)
	}
	if !p.Report(t.Context()).Draining {
		t.Error("the report does not say that it drains")
	}
}

// weir is not ready while no called upstream can be called. Neither upstreams that represent callers nor troubles of
// removed upstreams count.
func TestNotReadyWhileNothingCanBeCalled(t *testing.T) {
	a, b, callers := upstream(t, "a", weir.Policy{}), upstream(t, "b", weir.Policy{}), upstream(t, "callers", weir.Policy{})
	p := page(t, a, b, callers)
	p.Called = page(t, a, b).Upstreams
	var with []string
	p.Troubles = func() (all []Trouble) {
		for _, name := range with {
			all = append(all, Trouble{With: "credentials of " + name, Upstream: name})
		}
		return append(all, Trouble{With: "store"})
	}
	for _, c := range []struct {
		with string
		want int
	}{{"", 200}, {"a", 200}, {"a gone", 200}, {"a b", 503}, {"a b gone", 503}} {
		with = strings.Fields(c.with)
		if w := ask(p.Handler(), "GET", "/readyz", ""); w.Code != c.want {
			t.Errorf("troubles with %q: %d, want %d", c.with, w.Code, c.want)
		}
	}
}

func TestBreakerIsWorkedByHand(t *testing.T) {
	u := upstream(t, "s3", weir.Policy{})
	h := page(t, u).Handler()
	for _, c := range []struct {
		order string
		state breaker.Phase
		held  bool
		wait  time.Duration
	}{
		{`{"upstream":"s3","do":"open","for":"5m"}`, breaker.Open, true, 5 * time.Minute},
		{`{"upstream":"s3","do":"close"}`, breaker.Closed, true, 0},
		{`{"upstream":"s3","do":"open"}`, breaker.Open, true, breaker.Forever},
		{`{"upstream":"s3","do":"reset"}`, breaker.Closed, false, 0},
	} {
		w := ask(h, "POST", "/v1/breaker", c.order)
		v := u.Look(0).Breakers[0]
		if w.Code != 200 || v.Phase != c.state || v.Held != c.held || v.Wait > c.wait || c.wait > 0 && v.Wait < c.wait/2 {
			t.Errorf("%s: %d, breaker %+v", c.order, w.Code, v)
		}
		var got Upstream
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Breakers[0].State != c.state.String() || got.Breakers[0].Forced != c.held {
			t.Errorf("%s: told %s, %v", c.order, w.Body, err)
		} else if endless := c.wait == breaker.Forever; endless != (got.Breakers[0].WaitMS == -1) {
			t.Errorf("%s: told to wait %d ms", c.order, got.Breakers[0].WaitMS)
		}
		if d := try(u, weir.Call{}); d.Allowed != (c.state == breaker.Closed) {
			t.Errorf("%s: allowed is %v", c.order, d.Allowed)
		}
	}
}

// try asks whether a call may be made, without making it.
func try(u *weir.Upstream, c weir.Call) weir.Decision {
	var p weir.Permit
	d := u.Try(c, &p)
	if d.Allowed {
		p.Report(outcome.Outcome{Class: outcome.Canceled})
	}
	return d
}

func TestBreakersOfOperationsAreWorkedByHand(t *testing.T) {
	u := upstream(t, "s3", weir.Policy{Operations: []weir.Operation{{Name: "put"}, {Name: "get"}}})
	h := page(t, u).Handler()
	allowed := func() string {
		var s []string
		for _, op := range []string{"put", "get", "other"} {
			if try(u, weir.Call{Operation: op}).Allowed {
				s = append(s, op)
			}
		}
		return strings.Join(s, " ")
	}
	for _, c := range []struct{ order, allowed string }{
		{`{"upstream":"s3","key":"put","do":"open"}`, "get other"},
		{`{"upstream":"s3","do":"open"}`, ""},
		{`{"upstream":"s3","key":"default","do":"reset"}`, "other"},
		{`{"upstream":"s3","do":"reset"}`, "put get other"},
	} {
		w := ask(h, "POST", "/v1/breaker", c.order)
		if got := allowed(); w.Code != 200 || got != c.allowed {
			t.Errorf("%s: %d, %q is allowed, want %q", c.order, w.Code, got, c.allowed)
		}
	}
	w := ask(h, "POST", "/v1/breaker", `{"upstream":"s3","key":"list","do":"open"}`)
	if want := "want one of default, get, put, or no key for all breakers"; w.Code != 400 || !strings.Contains(w.Body.String(), want) {
		t.Errorf("answered %d %s, want %q", w.Code, w.Body, want)
	}
	got := stateOf(u)
	if len(got.Breakers) != 3 || got.Breakers[0].Key != "default" || got.Breakers[2].Key != "put" {
		t.Errorf("breakers %+v, want them in order", got.Breakers)
	}
}

func TestOneBreakerOfMany(t *testing.T) {
	u := upstream(t, "s3", weir.Policy{BreakerScope: "tenant"})
	ask(page(t, u).Handler(), "POST", "/v1/breaker", `{"upstream":"s3","key":"acme","do":"open"}`)
	for tenant, want := range map[string]bool{"acme": false, "other": true} {
		if d := try(u, weir.Call{Keys: map[string]string{"tenant": tenant}}); d.Allowed != want {
			t.Errorf("%s: allowed is %v", tenant, d.Allowed)
		}
	}
}

func TestReportShowsEverything(t *testing.T) {
	u := upstream(t, "s3", weir.Policy{
		Limits: []limit.Limit{
			{Name: "put", Operations: []string{"put"}, Rate: bucket.Rate{Amount: 100, Per: time.Hour}},
			{Name: "tenant", Scope: "tenant", Operations: []string{"put"}, Unit: "bytes", Rate: bucket.Rate{Amount: 1000, Per: time.Hour, Burst: 1000}},
		},
		Breaker: breaker.Config{Failures: 5},
	})
	report := func(c weir.Call, o outcome.Outcome) {
		var permit weir.Permit
		d := u.Try(c, &permit)
		if !d.Allowed {
			t.Fatalf("%+v", d)
		}
		permit.Report(o)
	}
	report(weir.Call{Operation: "put", Keys: map[string]string{"tenant": "acme"}, Cost: map[string]int64{"bytes": 300}}, outcome.Outcome{Class: outcome.Failed})
	report(weir.Call{Operation: "list"}, outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: time.Minute}})

	w := ask(page(t, u, upstream(t, "drs", weir.Policy{})).Handler(), "GET", "/v1/status", "")
	var r Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Upstreams) != 2 || r.Upstreams[0].Name != "drs" || r.Upstreams[0].Limits == nil || r.Upstreams[1].Name != "s3" {
		t.Fatalf("upstreams %+v, want drs and s3 in order", r.Upstreams)
	}
	s3 := r.Upstreams[1]
	if b := s3.Breakers[0]; b.State != "closed" || b.Failures != 1 {
		t.Errorf("breaker %+v", b)
	}
	if p := s3.Pauses; len(p) != 1 || s3.PausesInAll != 1 || p[0].Of != "operation" || p[0].Reason != "rate" || p[0].Operation != "default" || p[0].LeftMS < 50_000 || p[0].LeftMS > 60_000 {
		t.Errorf("pauses %+v", p)
	}
	byKey := make(map[string]Limit)
	for _, l := range s3.Limits {
		byKey[l.Name+" "+l.Key] = l
	}
	if l := byKey["tenant acme"]; l.Left != 700 || l.Full != 1000 || l.Unit != "bytes" || l.ResetMS < 1000_000 {
		t.Errorf("limit of acme %+v", l)
	}
	if l, ok := byKey["put "]; !ok || l.Rule == "" || l.Rate < 0.027 || l.Rate > 0.028 {
		t.Errorf("limit put %+v", l)
	}
}

func TestReportSaysWhenAQuotaResets(t *testing.T) {
	u := upstream(t, "gemini", weir.Policy{Limits: []limit.Limit{
		{Name: "rpd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 25}, Every: bucket.Day, Zone: "Asia/Kathmandu"},
		{Name: "rpm", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: time.Minute}},
	}})
	var p weir.Permit
	if d := u.Try(weir.Call{}, &p); !d.Allowed {
		t.Fatalf("%+v", d)
	}
	w := ask(page(t, u).Handler(), "GET", "/v1/status", "")
	var r Report
	if err := json.Unmarshal(w.Body.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	rpd, rpm := r.Upstreams[0].Limits[0], r.Upstreams[0].Limits[1]
	if rpd.Left != 24 || rpd.Full != 25 || rpd.Shape != "fixed" || rpd.Rule != "25 a day (Asia/Kathmandu)" || rpd.ResetAt.Format("15:04:05Z07:00") != "00:00:00+05:45" {
		t.Errorf("got %+v", rpd)
	}
	if rpm.Shape != "rolling" || !rpm.ResetAt.IsZero() || strings.Count(w.Body.String(), "reset_at") != 1 {
		t.Errorf("got %+v", rpm)
	}
}
