package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// The first call of a queue that wakes late takes the units that came of the limit for which it waited. Of other
// limits it gets no more than any other call.
func TestALateFirst(t *testing.T) {
	const late = 50 * time.Millisecond
	a := mustRegistry(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 1}))
	b := mustRegistry(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 1}))
	now := time.Duration(1) << 50
	takes := func(since time.Duration, charges ...Charge) (n int, lateness time.Duration) {
		for {
			var p Charges
			for _, c := range charges {
				p.Add(c)
			}
			if !p.TakeSince(now, since, 0).OK {
				return n, lateness
			}
			n, lateness = n+1, p.Late()
		}
	}
	if n, _ := takes(now, Charge{a, "", 1}); n != 1 {
		t.Errorf("%d went at once of a burst of 1", n)
	}
	now += 10*time.Millisecond + late
	if n, lateness := takes(now-late, Charge{a, "", 1}); n != 6 || lateness != late {
		t.Errorf("%d went, and the last was %v late; want what came in 60 ms", n, lateness)
	}
	if n, _ := takes(now-late, Charge{a, "", 1}); n != 0 {
		t.Errorf("%d more went", n)
	}
	now += time.Second
	if n, lateness := takes(now-time.Second, Charge{a, "", 1}); n != 11 || lateness != time.Second {
		t.Errorf("%d went, and the last was %v late; want what came in 100 ms, and the burst", n, lateness)
	}
	now += 10*time.Millisecond + late
	if n, _ := takes(now-late, Charge{a, "", 1}, Charge{b, "", 1}); n != 1 {
		t.Errorf("%d went, want one: nobody has waited for the other limit", n)
	}
}

// However late the first call of a queue wakes, and however often, the limit is exceeded at most by the units that
// came during the delay, and all units are used.
func TestPropertyOfLateFirsts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 9))
		unit := time.Duration(1+r.IntN(1000)) * time.Microsecond
		burst := 1 + r.Int64N(20)
		reg := mustRegistry(t, limitOf(bucket.Rate{Amount: int64(time.Second / unit), Per: time.Duration(time.Second/unit) * unit, Burst: burst}))
		now, most := time.Duration(1)<<50, time.Duration(0)
		begin, gone := now, int64(0)
		level, last, worst := 0.0, now, 0.0
		due := now
		for range 300 {
			late := time.Duration(r.Int64N(int64(5 * time.Millisecond)))
			most = max(most, late)
			for now = max(now, due) + late; ; {
				var p Charges
				cost := 1 + r.Int64N(burst)
				p.Add(Charge{reg, "", cost})
				if v := p.TakeSince(now, due, 0); !v.OK {
					due = now + v.Wait
					break
				}
				gone += cost
				level = max(0, level-float64(now-last)/float64(unit)) + float64(cost)
				last, worst = now, max(worst, level-float64(burst))
			}
		}
		if over := float64(most)/float64(unit) + 1e-3; worst > over {
			t.Fatalf("seed %d: %v units over, want %v at most", seed, worst, over)
		}
		if came := int64((now-begin)/unit) + burst; gone < came-2*burst-int64(most/unit)-1 {
			t.Fatalf("seed %d: %d went of %d", seed, gone, came)
		}
	}
}
