package llmsim

import (
	"math/rand/v2"
	"testing"
	"time"
)

var noWall time.Time

type taken struct {
	at time.Duration
	n  int64
}

// In every window of length t a bucket grants at most burst + rate * t, and a window at most N in any Per. The reported wait is
// exact to the nanosecond.
func TestGaugeNeverGrantsMore(t *testing.T) {
	seed := rand.Uint64()
	for i := range 2000 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		rate := Rate{N: 1 + r.Int64N(5000), Per: time.Duration(1 + r.Int64N(int64(time.Hour))), Window: r.IntN(2) == 0}
		if !rate.Window {
			rate.Burst = 1 + r.Int64N(2*rate.N)
		}
		g := newGauge(rate, 0)
		var now time.Duration
		var log []taken
		for range 40 {
			n := 1 + r.Int64N(g.r.Burst)
			d, never := g.wait(now, noWall, n)
			if never {
				t.Fatalf("seed %d, case %d: %+v: %d are said never to be there", seed, i, rate, n)
			}
			if d > 0 {
				if early, _ := g.wait(now+d-1, noWall, n); early <= 0 && d > 1 {
					t.Fatalf("seed %d, case %d: %+v: %d are there before the wait of %v is over", seed, i, rate, n, d)
				}
				if now += d; r.IntN(2) == 0 {
					now += time.Duration(r.Int64N(int64(rate.Per)))
				}
			}
			if late, _ := g.wait(now, noWall, n); late > 0 {
				t.Fatalf("seed %d, case %d: %+v: after the wait of %v, %v more are wanted", seed, i, rate, d, late)
			}
			g.charge(now, noWall, n)
			log = append(log, taken{now, n})
		}
		checkWindows(t, seed, i, g.r, log)
	}
}

func checkWindows(t *testing.T, seed uint64, i int, r Rate, log []taken) {
	t.Helper()
	for a := range log {
		var sum int64
		for _, x := range log[a:] {
			long := x.at - log[a].at
			if r.Window && long >= r.Per {
				break
			}
			sum += x.n
			limit := float64(r.Burst)
			if !r.Window {
				limit += float64(r.N)*float64(long)/float64(r.Per) + 1e-6
			}
			if float64(sum) > limit {
				t.Fatalf("seed %d, case %d: %+v: %d in %v, at most %g", seed, i, r, sum, long, limit)
			}
		}
	}
}

func TestGaugeGivesBackAndGoesIntoDebt(t *testing.T) {
	for _, window := range []bool{false, true} {
		g := newGauge(Rate{N: 100, Per: time.Second, Window: window}, 0)
		e := g.charge(0, noWall, 60)
		if g.adjust(0, noWall, e, -50); g.room(0) != 90 {
			t.Errorf("window %v: %d left, want 90", window, g.room(0))
		}
		if g.adjust(0, noWall, e, 190); g.room(0) != -100 {
			t.Errorf("window %v: %d left, want -100", window, g.room(0))
		}
		if d, _ := g.wait(0, noWall, 1); d <= 0 {
			t.Errorf("window %v: no wait in debt", window)
		}
		if full := g.full(0); window && full != time.Second || !window && full != 2*time.Second {
			t.Errorf("window %v: full in %v", window, full)
		}
		if g.room(time.Hour) != 100 {
			t.Errorf("window %v: %d left after an hour, want 100", window, g.room(time.Hour))
		}
	}
}

func TestDailyEndsAtMidnightOfItsZone(t *testing.T) {
	zone := time.FixedZone("west", -8*3600)
	d := newDaily(2, zone)
	wall := time.Date(2026, 3, 1, 7, 59, 0, 0, time.UTC) // 23:59 the day before
	d.charge(0, wall, 2)
	if wait, never := d.wait(0, wall, 1); wait != time.Minute || never {
		t.Errorf("wait %v, %v, want a minute", wait, never)
	}
	if wait, _ := d.wait(0, wall.Add(time.Minute), 2); wait != 0 {
		t.Errorf("wait %v on the next day", wait)
	}
	if _, never := d.wait(0, wall, 3); !never {
		t.Error("more than a day has is never there")
	}
}
