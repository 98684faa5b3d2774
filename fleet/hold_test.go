package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// holdersOf is a store whose clock the test sets, and the burst of its limit.
type holdersOf struct {
	t   *testing.T
	m   *Memory
	now time.Time
	id  uint64
}

func newHolders(t *testing.T) *holdersOf {
	h := &holdersOf{t: t, now: time.Unix(1_800_000_000, 0)}
	h.m = NewMemory(func() time.Time { return h.now })
	return h
}

func (h *holdersOf) take(n int64, s *spec) int64 {
	h.id++
	a := Ask{Group: "up", ID: h.id, Lane: 1, Copies: n, Claims: []Claim{{Rule: &s.rule, Key: "", Cost: 1}}}
	if err := h.m.Take(context.Background(), &a); err != nil {
		h.t.Fatal(err)
	}
	return a.Granted
}

// A process with leases shares a limit with a process without. Similarly, a limit before a reload is shared
// with the same limit after a reload that shortens holds. Units that one of them holds are not granted to the
// other.
func TestProcessesWithOtherLeasesShareALimit(t *testing.T) {
	rate := func(amount int64, per time.Duration, burst int64) limit.Limit {
		return limit.Limit{Name: "l", Rate: bucket.Rate{Amount: amount, Per: per, Burst: burst}}
	}
	for name, c := range map[string]struct {
		leased, not *spec
		take, most  int64
	}{
		"a lease and none":          {newSpec(rate(100, sec, 100), 250*time.Millisecond, 10*time.Millisecond), newSpec(rate(100, sec, 100), -1, 10*time.Millisecond), 25, 75},
		"another guard":             {newSpec(rate(100, sec, 100), -1, 200*time.Millisecond), newSpec(rate(100, sec, 100), -1, 10*time.Millisecond), 20, 80},
		"a limit by the second now": {newSpec(rate(6000, time.Minute, 6000), 0, 10*time.Millisecond), newSpec(rate(100, sec, 6000), 0, 10*time.Millisecond), 100, 5900},
	} {
		h := newHolders(t)
		if n := h.take(c.take, c.leased); n != c.take {
			t.Fatalf("%s: %d granted, want %d", name, n, c.take)
		}
		h.now = h.now.Add(c.leased.hold - time.Millisecond)
		if n := h.take(1e6, c.not); n > c.most || n < c.most-10 {
			t.Errorf("%s: %d go beside %d that are held, want %d at most", name, n, c.take, c.most)
		}
	}
}

// A full cell is kept as long as its grants may be used.
func TestACellIsKeptWhileItsGrantsAreHeld(t *testing.T) {
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: sec, Burst: 100}}
	leased := newSpec(l, 250*time.Millisecond, 10*time.Millisecond)
	var c Cell
	at := allIn(1e15)
	c.Settle(at, &Settlement{Rule: &leased.rule, Owe: 10})
	for _, x := range []struct {
		after time.Duration
		idle  bool
	}{{101 * time.Millisecond, false}, {349 * time.Millisecond, false}, {351 * time.Millisecond, true}} {
		if idle := c.Idle(allIn(at.Now + x.after.Microseconds())); idle != x.idle {
			t.Errorf("after %v: forgotten %v, want %v", x.after, idle, x.idle)
		}
	}
}

// Processes with different holds take units in turns as fast as possible. None starves, and the complete rate
// is used.
func TestTurnsOfHoldersUseTheRate(t *testing.T) {
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: sec, Burst: 100}}
	leased, not := newSpec(l, 250*time.Millisecond, 10*time.Millisecond), newSpec(l, -1, 10*time.Millisecond)
	h := newHolders(t)
	var n int64
	for i := range 1000 {
		s := leased
		if i%2 == 0 {
			s = not
		}
		n += h.take(5, s)
		h.now = h.now.Add(10 * time.Millisecond)
	}
	if n < 1000 {
		t.Errorf("%d in 10s of 100/s, want 1000 at least", n)
	}
}

// A hooked store calls a function during a request.
type hooked struct {
	Store
	do func(a *Ask)
}

func (h *hooked) Take(ctx context.Context, a *Ask) error {
	err := h.Store.Take(ctx, a)
	if h.do != nil {
		h.do(a)
	}
	return err
}

// A reload lengthens the hold during a request. The grant is valid only for the hold that the request stated.
func TestAGrantIsHeldNoLongerThanItWasAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1000, Per: sec, Burst: 100}}
		longer := l
		longer.Burst = 10_000
		s := &hooked{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 1, s, l, Options{})
		p := leaseOf(regs[0].Get(0, ""))
		was := p.spec().hold
		for range 500 {
			goOne(context.Background(), clock.System.Now()+sec, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			time.Sleep(2 * time.Millisecond)
		}
		var asked time.Duration
		s.do = func(a *Ask) {
			if len(a.Grants) > 0 && a.Grants[0].Extra > 4 && asked == 0 {
				asked = clock.System.Now()
				if err := regs[0].Set(asked, longer); err != nil {
					t.Error(err)
				}
			}
		}
		for asked == 0 {
			goOne(context.Background(), clock.System.Now()+sec, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
		}
		if is := p.spec().hold; is < 5*was {
			t.Fatalf("grants hold for %v after the reload, and %v before", is, was)
		}
		if n := p.held(asked + was - time.Millisecond); n == 0 {
			t.Fatal("nothing is held")
		}
		if n := p.held(asked + was + time.Millisecond); n > 0 {
			t.Errorf("%d units are held for longer than the %v that they were asked for", n, was)
		}
	})
}

// A full bucket reports as available what the store grants at once. The rest of the burst is reported as
// withheld.
func TestWhatTheStoreHoldsBackIsTheRestOfTheBurst(t *testing.T) {
	rate := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: sec, Burst: 100}}
	for name, c := range map[string]struct {
		l     limit.Limit
		lease time.Duration
		want  int64
	}{
		"leased":                {rate, 250 * time.Millisecond, 25},
		"not leased":            {rate, -1, 1}, // the guard
		"too small to be held":  {limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 5, Per: time.Minute, Burst: 5}}, 250 * time.Millisecond, 0},
		"in any window":         {limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: time.Minute}}, 250 * time.Millisecond, 0},
		"by windows of a clock": {limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Minute}, 250 * time.Millisecond, 0},
	} {
		f := New(NewMemory(nil), Options{Lease: c.lease})
		r, err := limit.NewShared(0, c.l, f.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		v := r.Get(0, "").Look(0)
		if v.HeldBack < c.want || v.HeldBack > c.want+1 || v.Full+v.HeldBack != c.l.Most() {
			t.Errorf("%s: %d of %d is held back, %d full; want %d", name, v.HeldBack, c.l.Most(), v.Full, c.want)
		}
		if c.l.Shape != limit.Bucket {
			continue
		}
		if n := newHolders(t).take(1e6, newSpec(c.l, c.lease, defaultGuard)); n != v.Full {
			t.Errorf("%s: the store grants %d at once, %d were told", name, n, v.Full)
		}
	}
}

// The weight of a unit does not depend on the distance of the store. So a cell keeps its history when the guard
// changes. The store may withhold more of the burst.
func TestUnitWeighsTheSameAtAnyDistance(t *testing.T) {
	for _, l := range []limit.Limit{rate(6, 400, time.Minute), rate(10, 10, time.Minute), rate(1, 20, sec), rate(2, 5, sec), rate(1, 3, time.Hour), rate(100, 100, sec)} {
		for _, base := range []time.Duration{time.Millisecond, defaultGuard, 50 * time.Millisecond} {
			near := newSpec(l, -1, base)
			for guard := base; guard <= longestGuard; guard += time.Millisecond {
				for _, lease := range []time.Duration{-1, 250 * time.Millisecond} {
					s := newSpecFrom(l, lease, base, guard)
					if s.rule.Meter.Unit != near.rule.Meter.Unit {
						t.Fatalf("%v, lease %v, guard %v to %v: a unit weighs %d, want %d", l.Rate, lease, base, guard, s.rule.Meter.Unit, near.rule.Meter.Unit)
					}
					if lost := 1 - float64(newMeter(l).Unit)/float64(s.rule.Meter.Unit); lost > 0.021 {
						t.Fatalf("%v, lease %v, guard %v to %v: %.3f of the rate is lost", l.Rate, lease, base, guard, lost)
					}
				}
			}
		}
	}
}

func newMeter(l limit.Limit) bucket.Meter { return bucket.MeterOf(l.Rate) }
