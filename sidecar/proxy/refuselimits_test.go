package proxy

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func daily(amount int64, zone string) limit.Limit {
	return limit.Limit{Name: "rpd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Day, Zone: zone}
}

// A refusal reports every limit of the call, and the end of the day for a quota.
func TestRefusalsTellOfEveryLimit(t *testing.T) {
	rpm := limit.Limit{Name: "rpm", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: time.Minute}}
	tpm := limit.Limit{Name: "tpm", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 250_000, Per: time.Minute}}
	rpd := daily(25, "America/Los_Angeles")
	resets := time.Date(2026, 3, 9, 7, 0, 0, 0, time.UTC) // of a day with 23 hours
	levels := []weir.LimitLevel{
		{Rule: rpm, Cost: 1, Level: limit.Level{Left: 4, Full: 5, Reset: 30 * time.Second}},
		{Rule: tpm, Cost: 9000, Level: limit.Level{Left: 200_000, Full: 250_000, Reset: 20 * time.Second, Paused: 40 * time.Second}},
		{Rule: rpd, Key: "acme", Cost: 1, Level: limit.Level{Full: 25, Reset: 2 * time.Hour, ResetAt: resets}},
	}
	w := httptest.NewRecorder()
	w.Header()[httpx.CorrelationHeader] = []string{"it"}
	respond(w, httptest.NewRequest("GET", "/", nil), refuse.Of(&weir.Refusal{
		Upstream: "gemini", Operation: "default", Reason: weir.QuotaExhausted, RetryAfter: 2 * time.Hour,
		Limit: "rpd", Key: "acme", Rule: rpd, Level: levels[2].Level, Levels: levels,
	}, time.Now()))
	resp := w.Result()
	e, h := failureOf(t, resp), resp.Header
	if resp.StatusCode != 429 || h.Get(RefusedHeader) != "quota_exhausted" {
		t.Errorf("answered %s %v", resp.Status, h)
	}
	if got, want := h.Get("RateLimit-Policy"), `"rpd";q=25;w=82800, "rpm";q=5;w=60, "tpm";q=250000;w=60`; got != want {
		t.Errorf("policies %s, want %s", got, want)
	}
	if got, want := h.Get("RateLimit"), `"rpd";r=0;t=7200, "rpm";r=4;t=30, "tpm";r=0;t=40`; got != want {
		t.Errorf("levels %s, want %s", got, want)
	}
	if s := seconds(t, h.Get("Retry-After")); s < 7200 || s > 7206 {
		t.Errorf("retry after %v s", s)
	}
	if e.Details["limit"] != "rpd" || e.Details["remaining"] != 0.0 || e.Details["reset_at"] != "2026-03-09T07:00:00Z" {
		t.Errorf("details %v", e.Details)
	}
	limits, _ := e.Details["limits"].([]any)
	if len(limits) != 3 {
		t.Fatalf("limits %v", e.Details["limits"])
	}
	for i, want := range []map[string]any{
		{"limit": "rpd", "key": "acme", "unit": "requests", "left": 0.0, "full": 25.0, "reset_ms": 7200000.0, "reset_at": "2026-03-09T07:00:00Z"},
		{"limit": "rpm", "unit": "requests", "left": 4.0, "full": 5.0, "reset_ms": 30000.0},
		{"limit": "tpm", "unit": "tokens", "left": 0.0, "full": 250000.0, "reset_ms": 40000.0},
	} {
		for name, v := range want {
			if got := limits[i].(map[string]any)[name]; got != v {
				t.Errorf("limit %d: %s is %v, want %v", i, name, got, v)
			}
		}
	}
}

func TestAQuotaEndToEnd(t *testing.T) {
	w := newWire(t)
	policy := brisk()
	policy.Limits = []limit.Limit{daily(2, "Asia/Tokyo"), {Name: "calls", Rate: bucket.Rate{Amount: 9, Per: time.Hour, Burst: 9}}}
	address := "http://" + listen(t, newProxy(t, up(w.url, policy)))
	for range 2 {
		if resp := do(t, "GET", address, ""); resp.StatusCode != http.StatusOK {
			t.Fatalf("the first: %s", resp.Status)
		}
	}
	asked := time.Now()
	resp := do(t, "GET", address, "")
	answered := time.Now()
	e := failureOf(t, resp)
	if resp.StatusCode != 429 || e.Details["reason"] != "quota_exhausted" || resp.Header.Get("RateLimit-Policy") != `"rpd";q=2;w=86400, "calls";q=9;w=3600` {
		t.Fatalf("answered %s %v: %+v", resp.Status, resp.Header, e)
	}
	resets, err := time.Parse(time.RFC3339, e.Details["reset_at"].(string))
	if err != nil || resets.Hour() != 15 || resets.Minute() != 0 {
		t.Errorf("resets at %v, %v; midnight in Tokyo is 15:00 UTC", resets, err)
	}
	after := time.Duration(seconds(t, resp.Header.Get("Retry-After"))) * time.Second // the clock was read before and after the response
	if first, last := asked.Add(after), answered.Add(after); last.Before(resets.Add(-time.Second)) || first.After(resets.Add(10*time.Second)) {
		t.Errorf("to come back between %v and %v, and it resets at %v", first, last, resets)
	}
	if len(w.heads()) != 2 {
		t.Error("it was sent")
	}
}
