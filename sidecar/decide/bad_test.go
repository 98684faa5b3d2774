package decide

import (
	"bytes"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// The response names the field and value of every error in a request, and nothing is charged.
func TestBadAcquires(t *testing.T) {
	u := upstream(t, "api", policy())
	s := server(t, u)
	h := s.Handler()
	field := func(field string) string { return `{"upstream":"api",` + field + `}` }
	many := func(n int, value string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, `"k%d":%s,`, i, value)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	huge := strings.Repeat(`{}\n`, 2560) // 10 KB of braces and newlines
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{``, 415, `content type "": want application/json`},
		{` `, 400, "the body is not one JSON value"},
		{`{`, 400, "the body is not one JSON value"},
		{`[]`, 400, "the body [...]: want an object"},
		{`"x"`, 400, `the body "x": want an object`},
		{`null`, 400, "the body null: want an object"},
		{`{"upstream":"api"} {}`, 400, "the body is not one JSON value"},
		{`{"upstream":"api"}x`, 400, "the body is not one JSON value"},
		{"{\"upstream\":\"\xff\"}", 400, "the body is not UTF-8"},
		{`{"upstream":"api","upstream":"api"}`, 400, `field "upstream" is given twice`},
		{strings.Repeat("[", 60_000), 400, "the body is not one JSON value"},
		{strings.Repeat("[", 5000) + strings.Repeat("]", 5000), 400, "the body [...]: want an object"},
		{`{"upstream":"` + strings.Repeat("x", longestBody) + `"}`, 413, "larger than 65536 bytes"},
		{`{}`, 400, "upstream: is missing"},
		{`{"upstream":""}`, 400, `upstream "": must not be empty`},
		{`{"upstream":null}`, 400, "upstream null: want a string"},
		{`{"upstream":["api"]}`, 400, "upstream [...]: want a string"},
		{`{"Upstream":"api"}`, 400, "Upstream: unknown field; want upstream, operation"},
		{`{"upstream":"nope"}`, 404, `upstream "nope": is unknown`},
		{`{"upstream":"no\u001bpe"}`, 400, `upstream "no\x1bpe": has a control character`},
		{`{"upstream":"` + strings.Repeat("u", 65) + `"}`, 400, "(65 bytes): is longer than 64 bytes"},
		{field(`"operation":7`), 400, "operation 7: want a string"},
		{field(`"keys":"tenant"`), 400, `keys "tenant": want an object`},
		{field(`"keys":{"tenant":7}`), 400, "keys.tenant 7: want a string"},
		{field(`"keys":{"tenant":"` + huge + `"}`), 400, `keys.tenant "{}\n{}\n`},
		{field(`"keys":{"tenant":"` + huge + `"}`), 400, "(7680 bytes): is longer than 256 bytes"},
		{field(`"keys":{"a\nb":"x"}`), 400, `keys.a\nb "a\nb": has a control character`},
		{field(`"keys":{"` + strings.Repeat("s", 65) + `":"x"}`), 400, "is longer than 64 bytes"},
		{field(`"keys":{"":"x"}`), 400, "the name of a field must not be empty"},
		{field(`"keys":{` + many(17, `"x"`) + `}`), 400, "keys {...}: has 17 fields; want at most 16"},
		{field(`"keys":{` + many(5, `"`+strings.Repeat("x", 250)+`"`) + `}`), 400, "keys: have 1260 bytes in total; want at most 1024"},
		{field(`"cost":5`), 400, "cost 5: want an object"},
		{field(`"cost":{"tokens":-5}`), 400, "cost.tokens -5: must not be negative"},
		{field(`"cost":{"tokens":1.5}`), 400, "cost.tokens 1.5: want a whole number"},
		{field(`"cost":{"tokens":1e3}`), 400, "cost.tokens 1e3: want a whole number"},
		{field(`"cost":{"tokens":"5"}`), 400, `cost.tokens "5": want a whole number`},
		{field(`"cost":{"tokens":99999999999999999999}`), 400, "cost.tokens 99999999999999999999: want a whole number"},
		{field(`"cost":{"tokens":1` + strings.Repeat("0", 5000) + `}`), 400, "000...: want a whole number"},
		{field(`"cost":{"tokens":1099511627777}`), 400, "is more than 1099511627776"},
		{field(`"cost":{"tokens":101}`), 400, "limit tokens holds at most 100"},
		{field(`"cost":{"requests":6}`), 400, "limit calls holds at most 5"},
		{field(`"wait":2`), 400, `wait 2: want a duration in a string`},
		{field(`"wait":"2"`), 400, `wait "2": want a duration in a string`},
		{field(`"wait":"+2s"`), 400, `wait "+2s": want a duration in a string`},
		{field(`"wait":"-1s"`), 400, `wait "-1s": want 0s to 30s`},
		{field(`"wait":"31s"`), 400, `wait "31s": want 0s to 30s`},
		{field(`"wait":"9999999h"`), 400, `wait "9999999h": want a duration`},
		{field(`"priority":"urgent"`), 400, `priority "urgent": want one of high, normal, low`},
		{field(`"priority":1`), 400, `priority 1: want one of`},
		{field(`"safe":"yes"`), 400, `safe "yes": want true or false`},
		{field(`"safe":null`), 400, `safe null: want true or false`},
		{field(`"id":"` + strings.Repeat("i", 129) + `"`), 400, "is longer than 128 bytes"},
		{field(`"id":"a\u0000"`), 400, `id "a\x00": has a control character`},
		{field(`"expires":"0s"`), 400, `expires "0s": want 1s to 10m0s`},
		{field(`"expires":"11m"`), 400, `expires "11m": want 1s to 10m0s`},
		{field(`"other":"a secret"`), 400, "other: unknown field"},
		{field(`"wait":"x","cost":{"a":-1},"safe":3`), 400, `cost.a -1: must not be negative; wait "x": want a duration in a string, such as "1.5s"; safe 3: want true or false`},
	} {
		a := acquire(t, h, c.body)
		code := refuse.ValidationError
		if c.status == 404 {
			code = refuse.NotFound
		}
		if a.Code != c.status || !a.says(code, c.says) {
			t.Errorf("%.100s:\n got %d %s\nwant %d %s %s", c.body, a.Code, a.Body, c.status, code, c.says)
		}
		if len(a.Error.Message) > 2000 || strings.Contains(a.Error.Message, "a secret") || strings.ContainsAny(a.Error.Message, "\n\x1b") {
			t.Errorf("%.100s: the message is too long, says a secret or breaks lines: %q", c.body, a.Error.Message)
		}
	}
	if n := left(t, u, "calls", ""); n != 5 || s.Held() != 0 {
		t.Errorf("%d calls are left and %d permits are out, want 5 and 0", n, s.Held())
	}
}

func TestMistakesAreTold(t *testing.T) {
	h := server(t, upstream(t, "api", policy())).Handler()
	a := acquire(t, h, `{"upstream":"api","cost":{"tokens":-5},"keys":{"tenant":"`+strings.Repeat("x", 300)+`"}}`)
	want := []mistake{
		{"keys.tenant", `"` + strings.Repeat("x", 64) + `..." (300 bytes)`, "is longer than 256 bytes"},
		{"cost.tokens", "-5", "must not be negative"},
	}
	if got := a.Error.Details.Fields; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `,"f%d":1`, i)
	}
	a = acquire(t, h, `{"upstream":"api"`+b.String()+`}`)
	if n := len(a.Error.Details.Fields); n != mostMistakes {
		t.Errorf("%d mistakes are told, want %d", n, mostMistakes)
	}
}

func TestBadReports(t *testing.T) {
	h := server(t, upstream(t, "api", policy())).Handler()
	id := permit(t, h, `{"upstream":"api"}`)
	field := func(field string) string { return `{"permit":"` + id + `",` + field + `}` }
	for _, c := range []struct {
		body   string
		status int
		says   string
	}{
		{`{}`, 400, "permit: is missing"},
		{`{"permit":7,"outcome":"ok"}`, 400, "permit 7: want a string"},
		{`{"permit":"","outcome":"ok"}`, 400, `permit "": must not be empty`},
		{`{"permit":"nope","outcome":"ok"}`, 404, `permit "nope": is unknown: it was issued by another weir`},
		{`{"permit":"` + strings.Repeat("{}", 65) + `","outcome":"ok"}`, 400, "is longer than 128 bytes"},
		{`{"permit":"` + id + `"}`, 400, "outcome: is missing; want outcome, status, code or unsent"},
		{field(`"outcome":"fine"`), 400, `outcome "fine": want one of ok, throttled, failed, rejected, canceled, unknown`},
		{field(`"status":"200"`), 400, `status "200": want an HTTP status`},
		{field(`"status":99`), 400, `status 99: want an HTTP status`},
		{field(`"status":600`), 400, `status 600: want an HTTP status`},
		{field(`"status":200.5`), 400, `status 200.5: want an HTTP status`},
		{field(`"status":429,"headers":["retry-after"]`), 400, `headers [...]: want an object`},
		{field(`"status":429,"headers":{"retry-after":1}`), 400, `headers.retry-after: want a string`},
		{field(`"status":429,"headers":{"cookie":"a secret\u0000"}`), 400, `headers.cookie: has a control character`},
		{field(`"outcome":"ok","usage":{"tokens":-1}`), 400, `usage.tokens -1: must not be negative`},
		{field(`"outcome":"throttled","retry_after":"-1s"`), 400, `retry_after "-1s": want 0s to 8784h0m0s`},
		{field(`"outcome":"throttled","retry_after":5`), 400, `retry_after 5: want a duration`},
		{field(`"outcome":"ok","again":true`), 400, `again true: cannot be combined with the outcome ok, which ends the call`},
		{field(`"outcome":"ok","unsent":true`), 400, `unsent true: cannot be combined with status, usage or the outcome ok`},
		{field(`"status":200,"unsent":true`), 400, `unsent true`},
		{field(`"unsent":true,"usage":{"tokens":1}`), 400, `unsent true`},
		{field(`"unsent":"true"`), 400, `unsent "true": want true or false`},
		{field(`"outcome":"ok","when":"now"`), 400, `when: unknown field; want permit, outcome`},
	} {
		a := report(t, h, c.body)
		code := refuse.ValidationError
		if c.status == 404 {
			code = refuse.NotFound
		}
		if a.Code != c.status || !a.says(code, c.says) || strings.Contains(a.Error.Message, "a secret") {
			t.Errorf("%.100s:\n got %d %s\nwant %d %s %s", c.body, a.Code, a.Body, c.status, code, c.says)
		}
	}
	if a := report(t, h, `{"permit":"`+id+`","outcome":"ok"}`); a.Code != 200 {
		t.Errorf("after bad reports: got %d %s, want 200", a.Code, a.Body)
	}
}

func TestBadRequests(t *testing.T) {
	const body = `{"upstream":"api"}`
	for _, c := range []struct {
		method, target, body string
		header               string
		status               int
		code, says           string
	}{
		{"GET", "/v1/acquire", "", "", 405, refuse.ValidationError, `method "GET": want POST`},
		{"PUT", "/v1/report", body, "", 405, refuse.ValidationError, `method "PUT": want POST`},
		{"POST", "/v1/limits", body, "", 405, refuse.ValidationError, `method "POST": want GET`},
		{"DELETE", "/healthz", "", "", 405, refuse.ValidationError, `method "DELETE": want GET`},
		{"GET", "/", "", "", 404, refuse.NotFound, `path "/": unknown path; see /openapi.yaml`},
		{"POST", "/v1/acquire/", body, "", 404, refuse.NotFound, `path "/v1/acquire/"`},
		{"POST", "/v1//acquire", body, "", 404, refuse.NotFound, `path "/v1//acquire"`},
		{"GET", "/%0a%1b", "", "", 404, refuse.NotFound, `path "/\n\x1b"`},
		{"POST", "/v1/acquire", body, "Content-Type: text/plain", 415, refuse.ValidationError, `content type "text/plain": want application/json`},
		{"POST", "/v1/acquire", body, "Content-Type: application/x-www-form-urlencoded", 415, refuse.ValidationError, "want application/json"},
		{"POST", "/v1/acquire", body, "Content-Type: application/json; charset=utf-8", 200, "", ""},
		{"POST", "/v1/acquire", body, "Host: rebound.example", 421, refuse.ValidationError, `host "rebound.example": is not a name of this listener`},
		{"GET", "/healthz", "", "Host: rebound.example", 421, refuse.ValidationError, `host "rebound.example"`},
		{"GET", "/healthz", "", "Host: 127.0.0.1:8082", 200, "", ""},
		{"GET", "/healthz", "", "Host: [::1]:8082", 200, "", ""},
		{"GET", "/healthz", "", "Host: decide.internal", 200, "", ""},
		{"HEAD", "/healthz", "", "", 200, "", ""},
		{"GET", "/v1/limits?upstream=api&key=x", "", "", 400, refuse.ValidationError, "key: unknown parameter"},
		{"GET", "/v1/limits?upstream=api&upstream=b", "", "", 400, refuse.ValidationError, `upstream "b": is given twice`},
		{"GET", "/v1/limits?upstream=%zz", "", "", 400, refuse.ValidationError, `the query "upstream=%zz" cannot be read`},
		{"GET", "/v1/limits?upstream=nope", "", "", 404, refuse.NotFound, `upstream "nope": is unknown`},
	} {
		s := server(t, upstream(t, "api", policy()))
		s.Hosts = func() []string { return []string{"Decide.internal:8082"} }
		a := ask(t, s.Handler(), c.method, c.target, c.body, c.header)
		if a.Code != c.status || !a.says(c.code, c.says) {
			t.Errorf("%s %s %s: got %d %s, want %d %s %s", c.method, c.target, c.header, a.Code, a.Body, c.status, c.code, c.says)
		}
		if allow := a.Header().Get("Allow"); (a.Code == 405) != (allow != "") {
			t.Errorf("%s %s: got %d with Allow %q", c.method, c.target, a.Code, allow)
		}
	}
}

// Internal errors are logged, and not shown to the caller.
func TestPanicsAndErrorsKeepTheirSecrets(t *testing.T) {
	var log bytes.Buffer
	s := server(t, upstream(t, "moody", weir.Policy{}, moody{}))
	s.Log = slog.New(slog.NewTextHandler(&log, nil))
	h := s.Handler()
	for _, c := range []struct {
		operation  string
		status     int
		code, logs string
	}{
		{"panic", 500, refuse.InternalError, "a gate with a secret"},
		{"broken", 503, refuse.ServiceUnavailable, "a store at 10.0.0.7 is away"},
	} {
		log.Reset()
		a := acquire(t, h, `{"upstream":"moody","operation":"`+c.operation+`"}`)
		if a.Code != c.status || a.Error.Code != c.code || strings.Contains(a.Body.String(), c.logs) || !strings.Contains(log.String(), c.logs) {
			t.Errorf("%s: got %d %s, logged %q", c.operation, a.Code, a.Body, log.String())
		}
		if s.Held() != 0 {
			t.Errorf("%s: %d places are taken, want 0", c.operation, s.Held())
		}
	}
	id := permit(t, h, `{"upstream":"moody","operation":"late"}`)
	if a := report(t, h, `{"permit":"`+id+`","outcome":"ok"}`); a.Code != 500 || s.Held() != 0 {
		t.Errorf("a report that panics: got %d, %d held, want 500 and 0", a.Code, s.Held())
	}
}

// atAddress makes a request look as if it had arrived at a non-loopback address.
func atAddress(r *http.Request, ip string) *http.Request {
	return r.WithContext(withLocal(r.Context(), &net.TCPAddr{IP: net.ParseIP(ip), Port: 8082}))
}

func TestWithoutTokensOnlyThisMachineIsLetIn(t *testing.T) {
	for _, c := range []struct {
		ip     string
		open   bool
		status int
	}{{"127.0.0.1", false, 200}, {"::1", false, 200}, {"10.0.0.7", false, 401}, {"10.0.0.7", true, 200}} {
		s := server(t, upstream(t, "api", policy()))
		s.Open = c.open
		r := httptest.NewRequest("GET", "/v1/limits?upstream=api", nil)
		r.Host = "localhost"
		if a := deliver(t, s.Handler(), atAddress(r, c.ip), ""); a.Code != c.status {
			t.Errorf("at %s, open %v: got %d %s, want %d", c.ip, c.open, a.Code, a.Body, c.status)
		}
	}
}
