package limit_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// If an upstream turns out to count per day, the limiter has as many units remaining as it reports. The assumption
// before does not matter.
func TestTheFirstWordOfADayLeavesWhatItSays(t *testing.T) {
	r, err := limit.NewRegistry(0, limit.Limit{Name: "rpm", Advertised: "requests", Scope: "pool", Rate: bucket.Rate{Amount: 100000, Per: time.Minute, Burst: 10000}})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Duration(0)
	for left := int64(199); left > 190; left-- {
		var p limit.Charges
		p.Add(limit.Charge{Registry: r, Key: "k", Cost: 1})
		if v := p.Take(now); !v.OK {
			t.Fatalf("with %d left at the upstream: %+v", left, v)
		}
		p.Sent()
		sent := now
		now += 10 * time.Millisecond
		said := outcome.Level{Name: "requests", Limit: 200, Remaining: left, Reset: time.Duration(200-left) * 432 * time.Second}
		p.Tell(now, sent, &outcome.Outcome{Hint: outcome.Hint{Limits: []outcome.Level{said}}}, nil)
		p.Settle(now, nil)
		if got := r.Get(now, "k").Look(now).Left; got > left || got < left-1 {
			t.Errorf("%d are left, and %d at the upstream", got, left)
		}
	}
}
