package fleet

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A longCall was granted at an instant, and is open until it reports.
type longCall struct {
	at   int64
	cost int64 // its counted units: the reservation, and after the report its usage
	mark Mark
	open bool
}

// TestReturnsNeverExceedTheLimit returns units at any time and in any order. In every window, the reservations
// of open calls and the usage of ended calls are within the limit. A bucket is never less full than the fullest
// of these windows.
func TestReturnsNeverExceedTheLimit(t *testing.T) {
	cases(t, 400, func(rng *rand.Rand) error {
		rate := bucket.Rate{Amount: 1 + rng.Int64N(1000), Per: time.Second, Burst: 1 + rng.Int64N(2000)}
		r := &Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(rate)}
		m := &r.Meter
		fill := m.Cap / m.Drain
		c, now := new(Cell), int64(1e12)
		patient := 1 + rng.Int64N(40) // duration of calls, in hundredths of the time in which a full bucket drains
		pace := max(2, fill/(1+rng.Int64N(20))/(1+rng.Int64N(80)))
		var calls []*longCall
		steps := 800
		if rng.IntN(40) == 0 { // the history is as long as possible
			steps, pace = 8000, max(2, fill/40)
		}
		for step := range steps {
			now += rng.Int64N(pace)
			if rng.IntN(50) == 0 {
				now += rng.Int64N(2 * fill)
			}
			at := allIn(now)
			for _, k := range calls {
				if k.open && now-k.at > rng.Int64N(patient*fill/100+1)*8 {
					back := rng.Int64N(k.cost + 1)
					if rng.IntN(2) == 0 {
						back = k.cost
					}
					c.Settle(at, &Settlement{Rule: r, Back: back, Mark: k.mark})
					k.cost, k.open = k.cost-back, false
				}
			}
			if rng.IntN(20) == 0 && c.Fill.Weight < 4*m.Cap {
				owe := 1 + rng.Int64N(1+r.Most()/20)
				c.Settle(at, &Settlement{Rule: r, Owe: owe})
				calls = append(calls, &longCall{at: now, cost: owe})
			}
			a := Ask{Copies: rng.Int64N(4), Claims: []Claim{{Rule: r, Cost: 1 + rng.Int64N(1+r.Most()/(1+rng.Int64N(100))), Extra: rng.Int64N(3)}}}
			a.Answer(at, []*Cell{c})
			if n := a.Granted*a.Claims[0].Cost + a.Grants[0].Extra; n > 0 {
				calls = append(calls, &longCall{now, n, a.Grants[0].Mark, true})
			}
			if steps > 800 && step%50 > 0 {
				continue
			}
			// The fullest window, by the units that count now.
			var sum, most int64
			for i := len(calls) - 1; i >= 0; i-- {
				sum += calls[i].cost * m.Unit
				most = max(most, sum-m.Drains(now-calls[i].at))
			}
			if c.turnTo(at, r, &limit.Windows{}); c.Fill.Weight < most {
				return fmt.Errorf("%+v: a weight of %d, want %d at least", rate, c.Fill.Weight, most)
			}
		}
		return nil
	})
}

// A longCallsCase is calls that reserve k times their usage and report after hold. A full bucket drains in
// fill.
type longCallsCase struct {
	k          float64
	fill, hold time.Duration
}

func (l longCallsCase) String() string {
	return fmt.Sprintf("k %v, burst of %v, calls of %v", l.k, l.fill, l.hold)
}

// allowed returns the share of the rate that the limit allows such calls to use.
func (l longCallsCase) allowed() float64 {
	return min(1, (1+l.fill.Seconds()/l.hold.Seconds())/l.k)
}

// run returns the share of the rate that a cell allows them to use, if the demand is higher than the rate.
func (l longCallsCase) run() (used float64, slots int) {
	const rate, perBurst = 1_000_000, 60
	r := &Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: rate, Per: time.Second, Burst: int64(rate * l.fill.Seconds())})}
	c, begin := new(Cell), int64(1e12)
	cost := r.Most() / perBurst
	uses := int64(float64(cost) / l.k)
	fill, hold := l.fill.Microseconds(), l.hold.Microseconds()
	warm := 2*hold + 2*fill
	end := warm + (4+4*fill/hold)*hold // calls have a cycle of hold
	var open []longCall
	var sum int64
	for now := begin; now < begin+end; now += fill / perBurst / 4 {
		at := allIn(now)
		for len(open) > 0 && open[0].at+hold <= now {
			c.Settle(at, &Settlement{Rule: r, Back: cost - uses, Mark: open[0].mark})
			open = open[1:]
		}
		a := Ask{Copies: perBurst, Claims: []Claim{{Rule: r, Cost: cost}}}
		a.Answer(at, []*Cell{c})
		for range a.Granted {
			open = append(open, longCall{at: now, mark: a.Grants[0].Mark})
			if now >= begin+warm {
				sum += uses
			}
		}
		slots = max(slots, len(c.Slots))
	}
	return float64(sum) / float64(end-warm) * 1e6 / rate, slots
}

// longCallsCases are combinations of reservations and durations.
func longCallsCases() (all []longCallsCase) {
	for _, k := range []float64{1.2, 2, 3} {
		for _, fill := range []time.Duration{time.Second, 4 * time.Second, 15 * time.Second} {
			for _, hold := range []time.Duration{1, 100, 300, 500, 1000, 3000, 10_000, 30_000, 60_000, 120_000} {
				all = append(all, longCallsCase{k, fill, hold * time.Millisecond})
			}
		}
	}
	return all
}

// TestCellLetsLongCallsUseWhatTheLimitAllows checks that unused reservations are available to other calls, even
// if calls take long.
func TestCellLetsLongCallsUseWhatTheLimitAllows(t *testing.T) {
	for _, l := range longCallsCases() {
		used, slots := l.run()
		want := l.allowed()
		t.Logf("%v: %.1f%% of the rate, %.1f%% of what is allowed, %d slots", l, 100*used, 100*used/want, slots)
		if used < 0.97*want {
			t.Errorf("%v: %.1f%% of the rate used, want 97%% of %.1f%%", l, 100*used, 100*want)
		}
		if used > 1.03*want {
			t.Errorf("%v: %.1f%% of the rate used, more than the %.1f%% that are allowed", l, 100*used, 100*want)
		}
	}
}
