package proxy

import (
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func seconds(t testing.TB, s string) float64 {
	t.Helper()
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		t.Errorf("want whole seconds: %v", err)
	}
	return float64(n)
}

// item matches one member of a RateLimit or RateLimit-Policy field: a quoted name and integers as parameters.
var item = regexp.MustCompile(`^"((?:[ !#-\[\]-~]|\\["\\])*)"((?:;[a-z]+=\d+)+)$`)

func TestRefusals(t *testing.T) {
	rate := func(n int64, per time.Duration) limit.Limit {
		return limit.Limit{Name: "put", Rate: bucket.Rate{Amount: n, Per: per}}
	}
	for _, c := range []struct {
		name    string
		refusal weir.Refusal
		status  int
		code    string
		after   int64  // seconds, before the jitter
		policy  string // "" means no fields
		rate    string
	}{
		{"rate", weir.Refusal{Reason: weir.RateLimited, Limit: "put", Rule: rate(3000, time.Second), Level: limit.Level{Left: 2}, RetryAfter: 1200 * time.Millisecond},
			429, refuse.RateLimitExceeded, 2, `"put";q=3000;w=1`, `"put";r=2;t=2`},
		{"a moment", weir.Refusal{Reason: weir.RateLimited, Limit: "put", Rule: rate(10, time.Minute), RetryAfter: 1},
			429, refuse.RateLimitExceeded, 1, `"put";q=10;w=60`, `"put";r=0;t=1`},
		{"now", weir.Refusal{Reason: weir.RateLimited, Limit: "put", Rule: rate(10, time.Minute)},
			429, refuse.RateLimitExceeded, 0, `"put";q=10;w=60`, `"put";r=0;t=0`},
		{"less than a second", weir.Refusal{Reason: weir.RateLimited, Limit: "put", Rule: rate(20, 100*time.Millisecond), RetryAfter: time.Second},
			429, refuse.RateLimitExceeded, 1, `"put";q=200;w=1`, `"put";r=0;t=1`},
		{"odd period", weir.Refusal{Reason: weir.RateLimited, Limit: "put", Rule: rate(3, 1500*time.Millisecond), RetryAfter: time.Second},
			429, refuse.RateLimitExceeded, 1, `"put";q=3;w=2`, `"put";r=0;t=1`},
		{"odd name", weir.Refusal{Reason: weir.RateLimited, Limit: "a\"b\\c\r\nü", Rule: rate(1, time.Second), RetryAfter: time.Second},
			429, refuse.RateLimitExceeded, 1, `"a\"b\\c____";q=1;w=1`, `"a\"b\\c____";r=0;t=1`},
		{"paused", weir.Refusal{Reason: weir.Paused, Limit: "put", Rule: rate(1, time.Second), Level: limit.Level{Left: 1}, RetryAfter: 7 * time.Second},
			429, refuse.RateLimitExceeded, 7, `"put";q=1;w=1`, `"put";r=0;t=7`},
		{"paused without a limit", weir.Refusal{Reason: weir.Paused, RetryAfter: 7 * time.Second}, 429, refuse.RateLimitExceeded, 7, "", ""},
		{"quota", weir.Refusal{Reason: weir.QuotaExhausted, Limit: "day", Rule: rate(5, 24*time.Hour), RetryAfter: 10 * time.Hour},
			429, refuse.RateLimitExceeded, 36000, `"day";q=5;w=86400`, `"day";r=0;t=36000`},
		{"concurrency", weir.Refusal{Reason: weir.ConcurrencyLimited, RetryAfter: time.Second}, 429, refuse.RateLimitExceeded, 1, "", ""},
		{"open", weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: 29*time.Second + 1}, 503, refuse.ServiceUnavailable, 30, "", ""},
		{"held open for ever", weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: math.MaxInt64}, 503, refuse.ServiceUnavailable, 60, "", ""},
		{"held open for almost ever", weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: math.MaxInt64 - 1e9}, 503, refuse.ServiceUnavailable, 60, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.refusal.Upstream, c.refusal.Operation = "s3", "put"
			w := httptest.NewRecorder()
			w.Header()[httpx.CorrelationHeader] = []string{"it"}
			respond(w, httptest.NewRequest("GET", "/", nil), refuse.Of(&c.refusal, time.Now()))
			resp := w.Result()
			e, h := failureOf(t, resp), resp.Header
			if resp.StatusCode != c.status || e.Code != c.code || e.Message == "" || h.Get(RefusedHeader) != string(c.refusal.Reason) {
				t.Errorf("answered %s, %s: %+v", resp.Status, h.Get(RefusedHeader), e)
			}
			if h.Get("RateLimit-Policy") != c.policy || h.Get("RateLimit") != c.rate {
				t.Errorf("fields %q and %q, want %q and %q", h.Get("RateLimit-Policy"), h.Get("RateLimit"), c.policy, c.rate)
			}
			for _, field := range []string{h.Get("RateLimit-Policy"), h.Get("RateLimit")} {
				if field != "" && !item.MatchString(field) {
					t.Errorf("%q is no structured field", field)
				}
			}
			s, ms := seconds(t, h.Get("Retry-After")), seconds(t, h.Get("Retry-After-Ms"))
			if most := float64(c.after) + math.Min(float64(c.after)/10, 5) + 1; s < float64(c.after) || s > most {
				t.Errorf("retry after %v s, want %v to %v", s, c.after, most)
			}
			if s != math.Ceil(ms/1000) {
				t.Errorf("%v s and %v ms: want the seconds rounded up", s, ms)
			}
			if least := c.refusal.RetryAfter.Milliseconds(); ms < float64(least) && c.after != 60 {
				t.Errorf("%v ms, sooner than the %v asked for", ms, c.refusal.RetryAfter)
			}
			for name, want := range map[string]any{"upstream": "s3", "operation": "put", "reason": string(c.refusal.Reason), "retry_after_ms": ms} {
				if e.Details[name] != want {
					t.Errorf("details: %s is %v, want %v", name, e.Details[name], want)
				}
			}
		})
	}
}

// A refusal from a dialect also contains Retry-After.
func TestErrorsThatAreNoRefusalsSayWhenToComeBack(t *testing.T) {
	w := newWire(t)
	u := up(w.url, brisk())
	u.Dialect = full{}
	resp := do(t, "GET", "http://"+listen(t, newProxy(t, u)), "")
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "1" || resp.Header.Get("Retry-After-Ms") != "1000" || resp.Header.Get(RefusedHeader) != "" {
		t.Errorf("answered %s %v", resp.Status, resp.Header)
	}
}

// full is a dialect without memory for the body.
type full struct{}

func (full) Hear(*http.Request, string) (httpx.Exchange, *refuse.Facts) {
	return heard{}, &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "full"}
}

func TestRefusedByALimitEndToEnd(t *testing.T) {
	w := newWire(t)
	policy := brisk()
	policy.Limits = []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
	policy.MaxWait = -1
	address := "http://" + listen(t, newProxy(t, up(w.url, policy)))
	if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusOK {
		t.Fatalf("the first: %s", resp.Status)
	}
	resp := do(t, "GET", address, "", "X-Correlation-Id: it")
	e := failureOf(t, resp)
	if resp.StatusCode != 429 || e.Details["limit"] != "calls" || e.Details["remaining"] != 0.0 || resp.Header.Get(httpx.CorrelationHeader) != "it" ||
		resp.Header.Get("RateLimit-Policy") != `"calls";q=1;w=3600` {
		t.Errorf("answered %s %v: %+v", resp.Status, resp.Header, e)
	}
	if s := seconds(t, resp.Header.Get("Retry-After")); s < 3599 || s > 3606 {
		t.Errorf("retry after %v s", s)
	}
	if len(w.heads()) != 1 {
		t.Error("it was sent")
	}
}

func TestKeysComeFromTheRequest(t *testing.T) {
	w := newWire(t)
	policy := brisk()
	policy.Limits = []limit.Limit{{Name: "tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
	policy.MaxWait = -1
	u := up(w.url, policy)
	u.Keys = map[string]httpx.Source{"tenant": {Kind: "header", Name: "authorization"}}
	p := newProxy(t, u)
	address := "http://" + listen(t, p)
	for _, c := range []struct {
		tenant string
		want   int
	}{{"a-secret", 200}, {"a-secret", 429}, {"b-secret", 200}, {"b-secret", 429}} {
		resp := do(t, "GET", address, "", "Authorization: "+c.tenant)
		if resp.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", c.tenant, resp.Status, c.want)
		}
		if got := text(t, resp) + fmt.Sprint(resp.Header) + fmt.Sprint(p.Upstreams()["up"].Look(10)); regexp.MustCompile(`[ab]-secret`).MatchString(got) {
			t.Errorf("a credential shows in %s", got)
		}
	}
}

// If weir and the upstream both request a wait, the caller gets the longer one.
func TestTheLongerWaitIsTold(t *testing.T) {
	for _, c := range []struct {
		why  error
		said outcome.Hint
		want string
	}{
		{errors.New("attempts spent"), outcome.Hint{}, "7"},
		{&weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: 20 * time.Second}, outcome.Hint{}, "20"},
		{&weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: 20 * time.Second}, outcome.Hint{Said: true, After: 7 * time.Second}, "20"},
		{&weir.Refusal{Reason: weir.CircuitOpen, RetryAfter: 2 * time.Second}, outcome.Hint{Said: true, After: 7 * time.Second}, "7"},
	} {
		h := http.Header{"Retry-After": {"7"}}
		markRefused(h, c.why, c.said)
		got, _ := strconv.Atoi(h.Get("Retry-After"))
		least, _ := strconv.Atoi(c.want)
		refused := errors.As(c.why, new(*weir.Refusal))
		if got < least || got > least+3 || (h.Get(RefusedHeader) == string(weir.CircuitOpen)) != refused {
			t.Errorf("%v, %+v: %v", c.why, c.said, h)
		}
	}
}
