package decide

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

func TestReportedOutcome(t *testing.T) {
	rules := classify.Rules{Rejected: []string{"500"}, Throttled: []string{"Later"}, Failed: []string{"404"}}
	now := time.Date(2026, 11, 21, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		body string
		want outcome.Outcome
	}{
		{`"outcome":"ok"`, outcome.Outcome{Class: outcome.OK}},
		{`"outcome":"unknown"`, outcome.Outcome{}},
		{`"outcome":"canceled","code":"gone"`, outcome.Outcome{Class: outcome.Canceled, Code: "gone"}},
		{`"status":200`, outcome.Outcome{Class: outcome.OK}},
		{`"status":204,"outcome":"failed"`, outcome.Outcome{Class: outcome.Failed}},
		{`"status":404`, outcome.Outcome{Class: outcome.Failed, Code: "404"}},
		{`"status":400`, outcome.Outcome{Class: outcome.Rejected, Code: "400"}},
		{`"status":500`, outcome.Outcome{Class: outcome.Rejected, Code: "500"}},
		{`"status":503`, outcome.Outcome{Class: outcome.Failed, Code: "503"}},
		{`"status":503,"code":"SlowDown"`, outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}},
		{`"code":"SlowDown"`, outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}},
		{`"code":"Later"`, outcome.Outcome{Class: outcome.Throttled, Code: "Later"}},
		{`"code":"Whatever"`, outcome.Outcome{Code: "Whatever"}},
		{`"status":429,"headers":{"retry-after":"7"}`, outcome.Outcome{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: 7 * time.Second}}},
		{`"status":429,"headers":{"RETRY-AFTER":"7"},"retry_after":"1.5s"`, outcome.Outcome{Class: outcome.Throttled, Code: "429", Hint: outcome.Hint{Said: true, After: 1500 * time.Millisecond}}},
		{`"outcome":"throttled","retry_after":"0s"`, outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true}}},
		{`"outcome":"ok","usage":{"tokens":7}`, outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 7}}},
		{`"unsent":true`, outcome.Outcome{Class: outcome.Canceled, Unsent: true}},
		{`"unsent":true,"outcome":"failed","code":"connection refused"`, outcome.Outcome{Class: outcome.Failed, Code: "connection refused", Unsent: true}},
	} {
		o, f := parse([]byte(`{"permit":"x",` + c.body + `}`))
		if f != nil {
			t.Fatal(f.Message)
		}
		q, f := decodeReport(o)
		if f != nil {
			t.Errorf("%s: %s", c.body, f.Message)
			continue
		}
		got := q.outcome(rules, now)
		if got.Undone != (got.Class == outcome.Throttled && c.want.Code != "" && got.Undone || got.Unsent) {
			t.Errorf("%s: undone is %v", c.body, got.Undone)
		}
		got.Undone, got.Hint.Advice, got.Hint.Limits = false, 0, nil
		if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", c.body, got, c.want)
		}
	}
}

func TestUsageIsSettled(t *testing.T) {
	for _, c := range []struct {
		body string
		left int64
	}{
		{`"outcome":"ok"`, 60},
		{`"outcome":"ok","usage":{"tokens":10}`, 90},
		{`"outcome":"ok","usage":{"tokens":0}`, 100},
		{`"outcome":"ok","usage":{"output_tokens":5}`, 60},
		{`"outcome":"ok","usage":{"tokens":70}`, 30},
		{`"outcome":"failed","usage":{"tokens":70}`, 30},
		{`"outcome":"failed"`, 60},
		{`"unsent":true`, 100},
		{`"outcome":"failed","unsent":true`, 100},
	} {
		synctest.Test(t, func(t *testing.T) {
			u := upstream(t, "api", policy())
			h := server(t, u).Handler()
			id := permit(t, h, `{"upstream":"api","cost":{"tokens":40}}`)
			if a := report(t, h, `{"permit":"`+id+`",`+c.body+`}`); a.Code != http.StatusOK || a.Body.String() != "{}\n" {
				t.Errorf("%s: got %d %s", c.body, a.Code, a.Body)
			}
			if n := left(t, u, "tokens", ""); n != c.left {
				t.Errorf("%s: %d tokens are left, want %d", c.body, n, c.left)
			}
		})
	}
}

// The largest usage that can be reported is charged, and the limit recovers.
func TestUsageWithoutMeasure(t *testing.T) {
	u := upstream(t, "api", policy())
	h := server(t, u).Handler()
	id := permit(t, h, `{"upstream":"api","cost":{"tokens":1}}`)
	report(t, h, fmt.Sprintf(`{"permit":%q,"outcome":"ok","usage":{"tokens":%d}}`, id, int64(mostCost)))
	a := acquire(t, h, `{"upstream":"api","cost":{"tokens":1}}`)
	if a.Code != 429 || a.Error.Details.Limit != "tokens" || a.Error.Details.RetryAfterMS <= 0 {
		t.Errorf("got %d %s, want a refusal by tokens", a.Code, a.Body)
	}
}

func TestHintsPauseTheLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := server(t, upstream(t, "api", policy())).Handler()
		id := permit(t, h, `{"upstream":"api"}`)
		report(t, h, `{"permit":"`+id+`","status":429,"headers":{"Retry-After":"20"}}`)
		a := acquire(t, h, `{"upstream":"api"}`)
		d := a.Error.Details
		if a.Code != 429 || d.Reason != "paused" || d.RetryAfterMS < 20_000 || d.RetryAfterMS > 22_000 {
			t.Fatalf("got %d %s, want a pause of 20 s", a.Code, a.Body)
		}
		if len(d.Limits) != 1 || d.Limits[0].Left != 0 || d.Limits[0].ResetMS < 20_000 {
			t.Errorf("limits: got %v, want nothing left for 20 s", d.Limits)
		}
		time.Sleep(20 * time.Second)
		permit(t, h, `{"upstream":"api"}`)
	})
}

func TestEndedPermitsSayHow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := server(t, upstream(t, "api", policy())).Handler()
		done, late := permit(t, h, `{"upstream":"api"}`), permit(t, h, `{"upstream":"api","expires":"1s"}`)
		report(t, h, `{"permit":"`+done+`","outcome":"ok"}`)
		time.Sleep(time.Second)
		for id, says := range map[string]string{done: "was already reported", late: "has expired", "nobody": "is unknown: it was issued by another weir"} {
			for range 2 {
				if a := report(t, h, `{"permit":"`+id+`","outcome":"ok"}`); a.Code != 404 || !a.says(refuse.NotFound, `permit "`+id+`": `+says) {
					t.Errorf("%s: got %d %s, want 404 %s", id, a.Code, a.Body, says)
				}
			}
		}
	})
}

// An expired probe lets the breaker admit another one. Unreported permits do not open the breaker.
func TestExpiredPermitsAndTheBreaker(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		h := server(t, u).Handler()
		for range 5 {
			permit(t, h, `{"upstream":"api","expires":"1s"}`)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := state(u); got != breaker.Closed {
			t.Fatalf("permits that nobody reported left the breaker %v", got)
		}
		u.Breaker("").ForceOpen(u.Now(), time.Second)
		time.Sleep(time.Second)
		permit(t, h, `{"upstream":"api","expires":"2s"}`) // the probe
		if a := acquire(t, h, `{"upstream":"api"}`); a.Code != 503 {
			t.Fatalf("a second probe: got %d %s, want 503", a.Code, a.Body)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		id := permit(t, h, `{"upstream":"api"}`)
		report(t, h, `{"permit":"`+id+`","outcome":"ok"}`)
		if got := state(u); got != breaker.Closed {
			t.Errorf("after a good probe the breaker is %v, want closed", got)
		}
	})
}

// The default breaker opens after ten failed calls in a row, regardless of the number of attempts.
func TestAttemptsOfOneCallCountOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := policy()
		p.Breaker = breaker.Config{}
		p.Limits = nil
		u := upstream(t, "api", p)
		h := server(t, u).Handler()
		fail := func(again string) {
			t.Helper()
			id := permit(t, h, `{"upstream":"api"}`)
			if a := report(t, h, `{"permit":"`+id+`","status":503`+again+`}`); a.Code != 200 {
				t.Fatalf("%d %s", a.Code, a.Body)
			}
		}
		for range 9 {
			for range 5 {
				fail(`,"again":true`)
			}
			fail("")
			time.Sleep(time.Second)
		}
		if got := state(u); got != breaker.Closed {
			t.Fatalf("nine calls of six attempts left the breaker %v", got)
		}
		if fail(`,"again":false`); state(u) != breaker.Open {
			t.Errorf("ten calls left it %v", state(u))
		}
		time.Sleep(time.Second)
		if fail(`,"again":true`); state(u) != breaker.Open {
			t.Errorf("a probe that failed left it %v", state(u))
		}
		id := "whatever"
		if a := report(t, h, `{"permit":"`+id+`","outcome":"ok","again":true}`); a.Code != 400 || !a.says(refuse.ValidationError, "again") {
			t.Errorf("ok, and again: %d %s", a.Code, a.Body)
		}
	})
}

// A unit that no limit counts is most likely misspelled, and the usage would be lost. The permit does not end, so
// that the caller can repeat the report.
func TestAMisspeltUnitOfAReportIsAMistake(t *testing.T) {
	u := upstream(t, "api", policy())
	h := server(t, u).Handler()
	id := permit(t, h, `{"upstream":"api","cost":{"tokens":40}}`)
	a := report(t, h, `{"permit":"`+id+`","outcome":"ok","usage":{"tokenz":5}}`)
	if f := a.Error.Details.Fields; a.Code != http.StatusBadRequest || len(f) != 1 || f[0].Field != "usage.tokenz" || !strings.Contains(f[0].Problem, "did you mean tokens") {
		t.Errorf("got %d %s", a.Code, a.Body)
	}
	if a := report(t, h, `{"permit":"`+id+`","outcome":"ok","usage":{"tokens":5}}`); a.Code != http.StatusOK {
		t.Errorf("made again: %d %s", a.Code, a.Body)
	}
	if n := left(t, u, "tokens", ""); n != 95 {
		t.Errorf("%d tokens are left, want 95", n)
	}
}
