package decide

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// described is the OpenAPI file, with a router that finds the description of a request.
var described = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(openAPIText)
	if err == nil {
		err = doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		panic(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	return doc, router
})

func init() {
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
}

func filterInput(r *http.Request, body string) (*openapi3filter.RequestValidationInput, error) {
	_, router := described()
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(strings.NewReader(body))
	route, path, err := router.FindRoute(r)
	if err != nil {
		return nil, err
	}
	return &openapi3filter.RequestValidationInput{
		Request: r, PathParams: path, Route: route,
		Options: &openapi3filter.Options{
			AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true,
		},
	}, nil
}

// conforms validates a response against the file, and also the request if it was valid.
func conforms(t testing.TB, r *http.Request, body string, a *answer) {
	t.Helper()
	in, err := filterInput(r, body)
	if err != nil {
		if a.Code != http.StatusNotFound && a.Code != http.StatusMethodNotAllowed && a.Code != http.StatusMisdirectedRequest && r.Method != http.MethodHead {
			t.Errorf("%s %s: answered with %d, and the file has no such operation", r.Method, r.URL.Path, a.Code)
		}
		return
	}
	out := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in, Status: a.Code, Header: a.Header(), Options: in.Options,
		Body: io.NopCloser(bytes.NewReader(a.Body.Bytes())),
	}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("%s %s: the answer %d %s is not as the file says: %v", r.Method, r.URL.Path, a.Code, a.Body, err)
	}
	if a.Code == http.StatusOK {
		if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil {
			t.Errorf("%s %s %s: was answered, but the file says: %v", r.Method, r.URL.Path, body, err)
		}
	}
}

// A moody gate behaves according to the call's operation.
type moody struct{}

func (moody) Admit(_ context.Context, c weir.Call) (func(outcome.Outcome), error) {
	switch c.Operation {
	case "panic":
		panic("a gate with a secret")
	case "late":
		return func(outcome.Outcome) { panic("a gate with a secret") }, nil
	case "broken":
		return nil, errors.New("a store at 10.0.0.7 is away")
	}
	if reason, ok := strings.CutPrefix(c.Operation, "refuse-"); ok {
		return nil, &weir.Refusal{Upstream: "moody", Operation: c.Operation, Reason: weir.Reason(reason), RetryAfter: time.Second}
	}
	if n, ok := strings.CutPrefix(c.Operation, "lack-"); ok {
		return nil, &weir.Refusal{Upstream: "moody", Reason: weir.RateLimited, RetryAfter: time.Second, Want: limit.Want{Lack: limit.Lack(n[0] - '0'), State: limit.State(n[1] - '0')}}
	}
	return nil, nil
}

// shared returns an upstream with a limit by user that a fleet shares.
func shared(t *testing.T) *weir.Upstream {
	t.Helper()
	f := fleet.New(fleet.NewMemory(nil), fleet.Options{})
	f.Start()
	p := weir.Policy{Limits: []limit.Limit{{Name: "per-user", Scope: "user", Rate: bucket.Rate{Amount: 100, Per: time.Hour, Burst: 100}}}}
	u, err := weir.New("shared", p, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.Close()
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return u
}

// An exchange is a request with the expected response.
type exchange struct {
	method, target, body string
	status               int
	code                 string // "" if there is no error
	header               []string
}

// TestEverythingInTheFileIsProduced makes the handlers produce every response in the file, with every field and every
// enumeration value. conforms checks that they produce no others.
func TestEverythingInTheFileIsProduced(t *testing.T) {
	seen := newCoverage()
	s := server(t, upstream(t, "api", policy()), upstream(t, "open", policy()), upstream(t, "moody", weir.Policy{}, moody{}), shared(t))
	s.MaxPermits = 50
	all := s.Upstreams()
	secret := auth.Token{Name: "a", SHA256: auth.Hash("a-secret-of-the-test"), Upstreams: []string{"api", "open", "moody", "absent", "shared"}}
	s.Auth = func() *auth.Auth { return &auth.Auth{Tokens: []auth.Token{secret}} }
	all["open"].Breaker("").ForceOpen(all["open"].Now(), time.Minute)
	h := s.Handler()
	bearer := "Authorization: Bearer a-secret-of-the-test"
	do := func(e exchange) *answer {
		t.Helper()
		header := e.header
		if !slices.ContainsFunc(header, func(f string) bool { return strings.HasPrefix(f, "Authorization:") }) {
			header = append([]string{bearer}, header...)
		}
		a := ask(t, h, e.method, e.target, e.body, header...)
		if a.Code != e.status || a.Error.Code != e.code {
			t.Errorf("%s %s %.80s: got %d %s, want %d %s", e.method, e.target, e.body, a.Code, a.Body, e.status, e.code)
		}
		seen.add(t, e, a)
		return a
	}
	const full = `{"upstream":"api","operation":"put","keys":{"tenant":"acme"},"cost":{"tokens":10},"wait":"0s","priority":"high","safe":true,"id":"x1","expires":"30s"}`
	got := do(exchange{"POST", "/v1/acquire", full, 200, "", nil})
	do(exchange{"POST", "/v1/report", `{"permit":"` + got.Permit + `","outcome":"ok","status":200,"headers":{"Retry-After":"1"},"code":"Fine","retry_after":"1.5s","usage":{"tokens":7},"unsent":false,"again":false}`, 200, "", nil})
	do(exchange{"POST", "/v1/report", `{"permit":"` + got.Permit + `","outcome":"ok"}`, 404, refuse.NotFound, nil})
	for _, p := range []string{"high", "normal", "low"} {
		do(exchange{"POST", "/v1/acquire", `{"upstream":"moody","priority":"` + p + `"}`, 200, "", nil})
	}
	for _, o := range outcome.Classes {
		id := do(exchange{"POST", "/v1/acquire", `{"upstream":"moody"}`, 200, "", nil}).Permit
		do(exchange{"POST", "/v1/report", fmt.Sprintf(`{"permit":%q,"outcome":%q}`, id, o), 200, "", nil})
	}
	late := do(exchange{"POST", "/v1/acquire", `{"upstream":"moody","operation":"late"}`, 200, "", nil}).Permit
	do(exchange{"POST", "/v1/report", `{"permit":"` + late + `","outcome":"ok"}`, 500, refuse.InternalError, nil})
	long := `{"upstream":"` + strings.Repeat("x", longestBody) + `"}`
	do(exchange{"POST", "/v1/acquire", `{"upstream":"api","operation":"put","keys":{"tenant":"acme"}}`, 200, "", nil})
	for _, e := range []exchange{
		{"POST", "/v1/acquire", `{"upstream":"api","operation":"put","keys":{"tenant":"acme"}}`, 429, refuse.RateLimitExceeded, nil},
		{"POST", "/v1/acquire", `{"upstream":"api","cost":{"tokens":-1}}`, 400, refuse.ValidationError, nil},
		{"POST", "/v1/acquire", `{"upstream":"absent"}`, 404, refuse.NotFound, nil},
		{"POST", "/v1/acquire", `{"upstream":"other"}`, 403, refuse.Forbidden, nil},
		{"POST", "/v1/acquire", `{"upstream":"api"}`, 401, refuse.Unauthorized, []string{"Authorization: Bearer no"}},
		{"POST", "/v1/acquire", `{"upstream":"api"}`, 421, refuse.ValidationError, []string{"Host: evil.example"}},
		{"POST", "/v1/acquire", `{"upstream":"api"}`, 415, refuse.ValidationError, []string{"Content-Type: text/plain"}},
		{"POST", "/v1/acquire", long, 413, refuse.ValidationError, nil},
		{"POST", "/v1/acquire", `{"upstream":"open"}`, 503, refuse.ServiceUnavailable, nil},
		{"POST", "/v1/acquire", `{"upstream":"moody","operation":"broken"}`, 503, refuse.ServiceUnavailable, nil},
		{"POST", "/v1/acquire", `{"upstream":"moody","operation":"panic"}`, 500, refuse.InternalError, nil},
		{"POST", "/v1/report", `{"permit":"x","status":7}`, 400, refuse.ValidationError, nil},
		{"POST", "/v1/report", `{"permit":"x","outcome":"ok"}`, 404, refuse.NotFound, nil},
		{"POST", "/v1/report", `{"permit":"x","outcome":"ok"}`, 401, refuse.Unauthorized, []string{"Authorization: Bearer no"}},
		{"POST", "/v1/report", `{"permit":"x","outcome":"ok"}`, 421, refuse.ValidationError, []string{"Host: evil.example"}},
		{"POST", "/v1/report", `{"permit":"x","outcome":"ok"}`, 415, refuse.ValidationError, []string{"Content-Type: text/plain"}},
		{"POST", "/v1/report", long, 413, refuse.ValidationError, nil},
		{"GET", "/v1/limits?upstream=api&operation=put", "", 200, "", nil},
		{"GET", "/v1/limits?upstream=shared&user=unmet", "", 200, "", nil},
		{"POST", "/v1/acquire", `{"upstream":"shared","keys":{"user":"met"}}`, 200, "", nil},
		{"GET", "/v1/limits?upstream=shared&user=met", "", 200, "", nil},
		{"GET", "/v1/limits?upstream=api&upstream=b", "", 400, refuse.ValidationError, nil},
		{"GET", "/v1/limits?upstream=absent", "", 404, refuse.NotFound, nil},
		{"GET", "/v1/limits?upstream=other", "", 403, refuse.Forbidden, nil},
		{"GET", "/v1/limits?upstream=api", "", 401, refuse.Unauthorized, []string{"Authorization: Bearer no"}},
		{"GET", "/v1/limits?upstream=api", "", 421, refuse.ValidationError, []string{"Host: evil.example"}},
		{"GET", "/healthz", "", 200, "", nil},
		{"GET", "/healthz", "", 421, refuse.ValidationError, []string{"Host: evil.example"}},
		{"GET", "/openapi.yaml", "", 200, "", nil},
		{"GET", "/openapi.yaml", "", 421, refuse.ValidationError, []string{"Host: evil.example"}},
	} {
		do(e)
	}
	for _, r := range weir.Reasons {
		e := exchange{"POST", "/v1/acquire", `{"upstream":"moody","operation":"refuse-` + string(r) + `"}`, 429, refuse.RateLimitExceeded, nil}
		if r.Unavailable() {
			e.status, e.code = 503, refuse.ServiceUnavailable
		}
		do(e)
	}
	for i, state := range limit.States {
		do(exchange{"POST", "/v1/acquire", fmt.Sprintf(`{"upstream":"moody","operation":"lack-%d%d"}`, i+1, state), 429, refuse.RateLimitExceeded, nil})
	}
	do(exchange{"POST", "/v1/acquire", fmt.Sprintf(`{"upstream":"moody","operation":"lack-%d%d"}`, limit.LacksReserved, limit.StateHeard), 429, refuse.RateLimitExceeded, nil})
	s.Upstreams = func() map[string]*weir.Upstream { panic("with a secret") }
	do(exchange{"GET", "/v1/limits?upstream=api", "", 500, refuse.InternalError, nil})
	s.Upstreams = func() map[string]*weir.Upstream { return all }

	several := func(upstreams ...string) string {
		var calls []string
		for _, u := range upstreams {
			calls = append(calls, `{"upstream":"`+u+`"}`)
		}
		return `{"calls":[` + strings.Join(calls, ",") + `]}`
	}
	do(exchange{"POST", "/v1/acquire", several("moody", "moody"), 200, "", nil})
	do(exchange{"POST", "/v1/acquire", several("moody", "open"), 503, refuse.ServiceUnavailable, nil})
	do(exchange{"POST", "/v1/acquire", several("moody", "absent"), 404, refuse.NotFound, nil})
	do(exchange{"POST", "/v1/acquire", several(), 400, refuse.ValidationError, nil})
	do(exchange{"POST", "/v1/acquire", `{"calls":[{"upstream":"moody"},{"upstream":"moody","operation":"refuse-paused"}]}`, 429, refuse.RateLimitExceeded, nil})
	for i, r := range []Rights{{MaxPermits: 1}, {MaxWaiting: -1}, {MaxKeys: -1}} {
		s.Rights = func(string) Rights { return r }
		do(exchange{"POST", "/v1/acquire", fmt.Sprintf(`{"upstream":"api","keys":{"tenant":"other%d"}}`, i), 429, refuse.RateLimitExceeded, nil})
	}
	s.Rights = nil

	at, _, _, err := s.permits().claim(call{"a", "api", "waits"}, (&acquireRequest{Upstream: "api"}).print(), nil)
	if err != nil {
		t.Fatal(err)
	}
	do(exchange{"POST", "/v1/acquire", `{"upstream":"api","id":"waits"}`, 429, refuse.RateLimitExceeded, nil})
	s.permits().give(at)
	s.permits().most = 0
	do(exchange{"POST", "/v1/acquire", `{"upstream":"api"}`, 503, refuse.ServiceUnavailable, nil})
	s.Close()
	do(exchange{"POST", "/v1/acquire", `{"upstream":"api"}`, 503, refuse.ServiceUnavailable, nil})
	seen.complete(t, func(path string) bool { return !strings.HasPrefix(path, deliveriesPath) })
}

// The handlers refuse everything that the schemas forbid.
func TestHandlersRefuseWhatTheFileForbids(t *testing.T) {
	h := server(t, upstream(t, "api", policy())).Handler()
	for _, c := range []struct{ path, body string }{
		{"/v1/acquire", `{}`}, {"/v1/acquire", `[]`}, {"/v1/acquire", `null`}, {"/v1/acquire", `{"upstream":""}`},
		{"/v1/acquire", `{"upstream":"api","wait":"2"}`}, {"/v1/acquire", `{"upstream":"api","wait":2}`},
		{"/v1/acquire", `{"upstream":"api","wait":"-2s"}`}, {"/v1/acquire", `{"upstream":"api","priority":"urgent"}`},
		{"/v1/acquire", `{"upstream":"api","cost":{"tokens":-1}}`}, {"/v1/acquire", `{"upstream":"api","cost":{"tokens":1.5}}`},
		{"/v1/acquire", `{"upstream":"api","cost":{"":1}}`}, {"/v1/acquire", `{"upstream":"api","keys":{"tenant":1}}`},
		{"/v1/acquire", `{"upstream":"api","safe":"yes"}`}, {"/v1/acquire", `{"upstream":"api","other":1}`},
		{"/v1/report", `{"permit":"x"}`}, {"/v1/report", `{"permit":"x","unsent":false}`}, {"/v1/report", `{"permit":"","outcome":"ok"}`},
		{"/v1/report", `{"permit":"x","outcome":"good"}`}, {"/v1/report", `{"permit":"x","status":99}`}, {"/v1/report", `{"permit":"x","status":600}`},
	} {
		a := ask(t, h, "POST", c.path, c.body)
		if a.Code != 400 {
			t.Errorf("POST %s %s: got %d, want 400", c.path, c.body, a.Code)
		}
		r := httptest.NewRequest("POST", c.path, nil)
		r.Header.Set("Content-Type", "application/json")
		in, err := filterInput(r, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if openapi3filter.ValidateRequest(t.Context(), in) == nil {
			t.Errorf("POST %s %s: the file allows it, the handler does not", c.path, c.body)
		}
	}
}

// coverage records the used parts of the file: operations with statuses, properties and enumeration values, by
// position.
type coverage map[string]bool

func newCoverage() coverage { return make(coverage) }

func (c coverage) add(t testing.TB, e exchange, a *answer) {
	t.Helper()
	in, err := filterInput(httptest.NewRequest(e.method, e.target, nil), e.body)
	if err != nil {
		t.Fatalf("%s %s: %v", e.method, e.target, err)
	}
	op := in.Route.Operation
	place := e.method + " " + in.Route.Path
	for _, p := range op.Parameters {
		if httptest.NewRequest(e.method, e.target, nil).URL.Query().Has(p.Value.Name) && a.Code == 200 {
			c[place+"?"+p.Value.Name] = true
		}
	}
	c[fmt.Sprintf("%s %d", place, a.Code)] = true
	if op.RequestBody != nil && a.Code == 200 && e.body != "" {
		c.walk(op.RequestBody.Value.Content["application/json"].Schema, decoded(t, e.body), "request of "+place)
	}
	if m := op.Responses.Status(a.Code).Value.Content["application/json"]; m != nil {
		c.walk(m.Schema, decoded(t, a.Body.String()), fmt.Sprintf("%s %d", place, a.Code))
	}
}

func decoded(t testing.TB, body string) any {
	t.Helper()
	o, f := parse([]byte(body))
	if f != nil {
		t.Fatalf("%s: %s", body, f.Message)
	}
	return value{kind: isObject, in: o}.plain()
}

// walk records which parts of a schema a value uses.
func (c coverage) walk(s *openapi3.SchemaRef, v any, place string) {
	switch v := v.(type) {
	case map[string]any:
		for name, property := range s.Value.Properties {
			if in, ok := v[name]; ok {
				c[place+"."+name] = true
				c.walk(property, in, place+"."+name)
			}
		}
	case []any:
		for _, in := range v {
			c.walk(s.Value.Items, in, place+"[]")
		}
	case string:
		if len(s.Value.Enum) > 0 {
			c[place+"="+v] = true
		}
	}
}

// complete reports the unused parts of the file under the selected paths.
func (c coverage) complete(t *testing.T, of func(path string) bool) {
	t.Helper()
	doc, _ := described()
	for path, item := range doc.Paths.Map() {
		if !of(path) {
			continue
		}
		for method, op := range item.Operations() {
			place := method + " " + path
			for _, p := range op.Parameters {
				if at := place + "?" + p.Value.Name; p.Value.In == "query" && !c[at] {
					t.Errorf("the file has %s; nothing used it", at)
				}
			}
			if op.RequestBody != nil {
				c.missing(t, op.RequestBody.Value.Content["application/json"].Schema, "request of "+place)
			}
			for status, r := range op.Responses.Map() {
				at := place + " " + status
				if !c[at] {
					t.Errorf("the file has %s; no handler gave it", at)
					continue
				}
				if m := r.Value.Content["application/json"]; m != nil {
					c.missing(t, m.Schema, at)
				}
			}
		}
	}
}

// elsewhere lists properties that only some of the responses with the same schema can have.
var elsewhere = []string{
	"413.error.details.", "415.error.details.", "421.error.details.", // the body was not read
}

func (c coverage) missing(t *testing.T, s *openapi3.SchemaRef, place string) {
	t.Helper()
	for _, word := range s.Value.Enum {
		if at := fmt.Sprint(place, "=", word); !c[at] {
			t.Errorf("the file has %s; nothing used it", at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Value.Properties)) {
		at := place + "." + name
		if slices.ContainsFunc(elsewhere, func(e string) bool { return strings.Contains(at, e) }) {
			continue
		}
		if !c[at] {
			t.Errorf("the file has %s; nothing used it", at)
			continue
		}
		c.missing(t, s.Value.Properties[name], at)
	}
	if s.Value.Items != nil {
		c.missing(t, s.Value.Items, place+"[]")
	}
}
