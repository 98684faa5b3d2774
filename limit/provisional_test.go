package limit_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// grants returns how many calls proceed at an instant, and reports the outcome of one of them.
func grants(t *testing.T, r *limit.Registry, now time.Duration, o outcome.Outcome) (n int) {
	t.Helper()
	var told *limit.Charges
	for {
		p := new(limit.Charges)
		p.Add(limit.Charge{Registry: r, Key: "k", Cost: 1})
		if !p.Take(now).OK {
			break
		}
		n++
		told = p
	}
	if told == nil {
		t.Fatal("no call goes")
	}
	told.Sent()
	told.Tell(now, now, &o, nil)
	return n
}

// An upstream that responds without a report of its limit gets 100 times the configured rate, until it throttles a
// call. After a throttle it gets the configured rate for one period.
func TestProvisionalRateHoldsUntilTheFirstAnswerAndAfterThrottles(t *testing.T) {
	ok, throttled := outcome.Outcome{Class: outcome.OK}, outcome.Outcome{Class: outcome.Throttled, Undone: true}
	failed := outcome.Outcome{Class: outcome.Failed}
	reports := ok
	reports.Hint.Limits = []outcome.Level{{Name: "requests", Limit: 200, Remaining: 200}}
	const minute = time.Minute
	type step struct {
		at      time.Duration
		outcome outcome.Outcome
		want    int // calls that proceed then
	}
	for name, c := range map[string]struct {
		provisional bool
		steps       []step
	}{
		"a success raises it":           {true, []step{{0, ok, 10}, {0, ok, 1000}}},
		"not if it is not provisional":  {false, []step{{0, ok, 10}, {minute, ok, 10}}},
		"a failure does not":            {true, []step{{0, failed, 10}, {minute, ok, 10}}},
		"a throttle ends it":            {true, []step{{0, ok, 10}, {0, throttled, 1000}, {6 * time.Second, ok, 5}, {18 * time.Second, ok, 10}}},
		"for a period":                  {true, []step{{0, ok, 10}, {0, throttled, 1000}, {minute, ok, 10}, {minute, ok, 1000}}},
		"a throttle keeps it":           {true, []step{{0, throttled, 10}, {30 * time.Second, ok, 10}}},
		"a report replaces it":          {true, []step{{0, ok, 10}, {0, reports, 1000}, {minute, ok, 50}, {2 * minute, ok, 50}}},
		"a report is known from before": {true, []step{{0, reports, 10}, {minute, ok, 50}, {2 * minute, throttled, 50}, {3 * minute, ok, 50}}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := limit.NewRegistry(0, limit.Limit{
				Name: "rpm", Advertised: "requests", Provisional: c.provisional, Scope: "pool", Rate: bucket.Rate{Amount: 50, Per: minute, Burst: 10},
			})
			if err != nil {
				t.Fatal(err)
			}
			for i, s := range c.steps {
				if got := grants(t, r, s.at, s.outcome); got != s.want {
					t.Fatalf("step %d at %v: %d calls go, want %d", i, s.at, got, s.want)
				}
			}
		})
	}
	if l := (limit.Limit{Name: "rpm", Provisional: true, Rate: bucket.Rate{Amount: 50, Per: minute}}); l.Validate() == nil {
		t.Error("a provisional rate that no upstream can report is accepted")
	}
}
