package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A LongCalls describes calls that reserve K times the units that they use, and report their usage after Hold. A
// full bucket drains in Fill.
type LongCalls struct {
	K          float64
	Fill, Hold time.Duration
}

func (l LongCalls) String() string {
	return fmt.Sprintf("k %v, burst of %v, calls of %v", l.K, l.Fill, l.Hold)
}

// Allowed returns the share of the rate that the limit allows such calls to use.
func (l LongCalls) Allowed() float64 { return min(1, (1+l.Fill.Seconds()/l.Hold.Seconds())/l.K) }

// LongCallsCases returns the cases of TestLongCalls. A long campaign tests each K with calls of 1 ms to 120 s,
// other runs only a few cases.
func LongCallsCases() (all []LongCalls) {
	if !campaign.Long() {
		return []LongCalls{
			{2, time.Second, time.Millisecond}, {3, time.Second, time.Second}, {2, time.Second, 3 * time.Second},
			{1.2, time.Second, 10 * time.Second}, {3, 15 * time.Second, 10 * time.Second}, {3, time.Second, 80 * time.Second},
		}
	}
	for _, k := range []float64{1.2, 2, 3} {
		for _, fill := range []time.Duration{time.Second, 15 * time.Second} {
			for _, hold := range []time.Duration{1, 300, 1000, 10_000, 120_000} {
				all = append(all, LongCalls{k, fill, hold * time.Millisecond})
			}
		}
	}
	return all
}

// perBurst returns how many calls a full bucket has room for. The bucket cannot grant them all simultaneously.
func (l LongCalls) perBurst() int64 {
	if l.Hold > 10*l.Fill {
		return 20
	}
	return 120
}

// Share returns the share of the rate that the calls use when they want more than the limit allows. The calls use
// the limit of a group and ask the stores in turn. advance moves the clock of the stores.
func (l LongCalls) Share(t testing.TB, stores []fleet.Store, advance func(d time.Duration), group string) float64 {
	t.Helper()
	const rate = 1_000_000
	r := &fleet.Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: rate, Per: time.Second, Burst: int64(rate * l.Fill.Seconds())})}
	cost := r.Most() / l.perBurst()
	uses := int64(float64(cost) / l.K)
	type call struct {
		at   time.Duration
		mark fleet.Mark
	}
	var open, all []call
	var settle []fleet.Settlement
	var now time.Duration
	warm := 2*l.Hold + 2*l.Fill
	length := (2 + 2*l.Fill/l.Hold) * l.Hold // calls repeat in cycles
	used, id, step := int64(0), uint64(0), l.Fill/time.Duration(l.perBurst())*2
	for ; now < warm+length; now += step {
		advance(step)
		for len(open) > 0 && now-open[0].at >= l.Hold-step/2 {
			settle = append(settle, fleet.Settlement{Rule: r, Key: "k", Back: cost - uses, Mark: open[0].mark})
			open = open[1:]
		}
		for i, s := range stores {
			id++
			a := &fleet.Ask{Group: group, ID: id, Lane: uint64(i + 1), Copies: l.perBurst(), Claims: []fleet.Claim{{Rule: r, Key: "k", Cost: cost}}, Settle: settle}
			settle = nil
			if err := s.Take(context.Background(), a); err != nil {
				t.Fatal(err)
			}
			for range a.Granted {
				open = append(open, call{now, a.Grants[0].Mark})
				all = append(all, open[len(open)-1])
				if now >= warm {
					used += uses
				}
			}
		}
	}
	for i, last := range all { // the calls of a window that is no longer than Hold are all open when it ends
		for k := i; k >= 0 && last.at-all[k].at < l.Hold-step; k-- {
			reserved, allowed := int64(i-k+1)*cost, r.Most()+(last.at-all[k].at).Microseconds()*rate/1_000_000
			if reserved > allowed {
				t.Fatalf("%v after the start: open calls have reserved %d units of %d in %v", last.at, reserved, allowed, last.at-all[k].at)
			}
		}
	}
	return float64(used) / length.Seconds() / rate
}

// TestLongCalls checks that calls that reserve more than they use and report late use 97% to 103% of their allowed
// share of the rate (95% at least if that is the whole rate), and that open calls never reserve more than the limit allows.
// open returns stores that share their data and a function that moves their clock.
func TestLongCalls(t *testing.T, open func(t *testing.T) (stores []fleet.Store, advance func(d time.Duration))) {
	for _, l := range LongCallsCases() {
		t.Run(l.String(), func(t *testing.T) {
			t.Parallel()
			stores, advance := open(t)
			used, allowed := l.Share(t, stores, advance, l.String()), l.Allowed()
			t.Logf("%.1f%% of the rate, %.1f%% of what is allowed", 100*used, 100*used/allowed)
			least := 0.97
			if allowed == 1 { // nothing is left over for rounding
				least = 0.95
			}
			if used < least*allowed || used > 1.03*allowed {
				t.Errorf("%.1f%% of the rate used, want %.0f%% to 103%% of %.1f%%", 100*used, 100*least, 100*allowed)
			}
		})
	}
}
