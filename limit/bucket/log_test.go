package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// A going is a granted or waiting call.
type going struct {
	mark Mark
	n    int64
	at   time.Duration
}

// overWindow checks every half-open window that ends with a grant.
func overWindow(all []*going, w Window) error {
	first, sum := 0, int64(0)
	for _, last := range all {
		sum += last.n
		for all[first].at <= last.at-w.Per {
			sum -= all[first].n
			first++
		}
		if sum > w.Amount {
			return fmt.Errorf("%d units in the %v up to %v, want at most %d", sum, w.Per, last.at, w.Amount)
		}
	}
	return nil
}

// A logRun is a random history of a log and the real usage. Waiting calls form a queue: the first asks how long it
// has to wait, and then takes.
type logRun struct {
	rng     *rand.Rand
	log     Log
	dearest int64
	now     time.Duration
	paused  time.Duration
	waiting []*going
	went    []*going
}

func newLogRun(rng *rand.Rand, w Window) *logRun {
	return &logRun{rng: rng, log: NewLog(w), dearest: w.Amount, now: time.Duration(rng.Int64N(1 << 40))}
}

// advance lets waiting calls proceed in order, each at its predicted instant and not earlier.
func (r *logRun) advance(to time.Duration) error {
	for len(r.waiting) > 0 {
		g := r.waiting[0]
		wait := r.log.Ask(r.now, r.paused, g.n)
		if wait > to-r.now {
			break
		}
		if wait > 0 {
			if _, left, ok := r.log.Take(r.now+wait-1, r.paused, g.n); ok || left != 1 {
				return fmt.Errorf("goes before the %v that it was told, or still waits %v: %v", wait, left, ok)
			}
		}
		r.now += wait
		m, left, ok := r.log.Take(r.now, r.paused, g.n)
		if !ok {
			return fmt.Errorf("still has to wait %v when its turn has come", left)
		}
		r.waiting = r.waiting[1:]
		if err := r.goes(m, g.n); err != nil {
			return err
		}
	}
	r.now = to
	return nil
}

func (r *logRun) goes(m Mark, n int64) error {
	if r.now < r.paused {
		return fmt.Errorf("goes at %v, in a pause until %v", r.now, r.paused)
	}
	r.went = append(r.went, &going{m, n, r.now})
	return nil
}

// used returns the usage in a window of this length up to now.
func (r *logRun) used(per time.Duration) (sum int64) {
	for i := len(r.went) - 1; i >= 0 && r.went[i].at > r.now-per; i-- {
		sum += r.went[i].n
	}
	return sum
}

func (r *logRun) take() error {
	n := 1 + r.rng.Int64N(r.dearest)
	left := r.log.Left(r.now)
	said := r.log.Ask(r.now, r.paused, n)
	m, wait, ok := r.log.Take(r.now, r.paused, n)
	switch {
	case wait != said:
		return fmt.Errorf("told to wait %v and then %v", said, wait)
	case ok != (wait == 0):
		return fmt.Errorf("%v, with a wait of %v", ok, wait)
	case ok && left < n:
		return fmt.Errorf("%d went although %d were left", n, left)
	case !ok && r.log.Left(r.now) != left:
		return errors.New("a refusal changed what is left")
	case !ok && r.now >= r.paused && r.used(r.log.Per+r.log.grain)+n <= r.log.Amount:
		return fmt.Errorf("%d have to wait for %v although %d of %d went", n, wait, r.used(r.log.Per), r.log.Amount)
	case ok:
		return r.goes(m, n)
	}
	if r.rng.IntN(2) == 0 {
		r.waiting = append(r.waiting, &going{n: n})
	}
	return nil
}

// back returns a part of a grant. Grants of which nothing remains count as never made. A waiting call holds nothing
// and just leaves.
func (r *logRun) back() {
	if n := len(r.waiting); n > 0 && r.rng.IntN(2) == 0 {
		i := r.rng.IntN(n)
		r.waiting = append(r.waiting[:i:i], r.waiting[i+1:]...)
		return
	}
	if len(r.went) == 0 {
		return
	}
	i := len(r.went) - 1 - min(r.rng.IntN(len(r.went)), r.rng.IntN(50))
	g := r.went[i]
	n := g.n
	if r.rng.IntN(2) == 0 {
		n = r.rng.Int64N(g.n + 1)
	}
	if _, e := r.log.find(g.mark); e == nil && g.at > r.now-r.log.Per {
		panic("forgotten")
	}
	if g.n -= r.log.Back(g.mark, n); g.n == 0 {
		r.went = append(r.went[:i:i], r.went[i+1:]...)
	}
}

func (r *logRun) step() error {
	if err := r.advance(r.now + time.Duration(upTo(r.rng, int64(r.log.Per)/1+1))); err != nil {
		return err
	}
	for range 1 + r.rng.IntN(8) {
		if err := r.act(); err != nil {
			return err
		}
		if r.rng.IntN(2) == 0 {
			if err := r.advance(r.now + time.Duration(r.rng.Int64N(int64(r.log.Per)/int64(2000)+2))); err != nil {
				return err
			}
		}
	}
	return nil
}

func (r *logRun) act() error {
	switch r.rng.IntN(30) {
	case 0, 1, 2, 3, 4:
		r.back()
	case 5:
		r.paused = max(r.paused, r.now+time.Duration(r.rng.Int64N(int64(r.log.Per))))
	case 6:
		if r.rng.IntN(4) == 0 {
			r.paused = r.now
		}
	default:
		if err := r.take(); err != nil {
			return err
		}
	}
	return r.sound()
}

// sound checks the sums of a log.
func (r *logRun) sound() error {
	if left := r.log.Left(r.now); left != max(0, r.log.Amount-r.log.sum) || left > r.log.Amount {
		return fmt.Errorf("%d left of %d", left, r.log.Amount)
	}
	if r.log.grain == 0 && r.log.sum != r.used(r.log.Per) {
		return fmt.Errorf("counts %d, want %d", r.log.sum, r.used(r.log.Per))
	}
	if reset := r.log.Reset(r.now); r.log.grain == 0 && (reset == 0) != (r.log.sum == 0) {
		return fmt.Errorf("%d count, and all is there again in %v", r.log.sum, reset)
	}
	copied := r.log.Clone()
	copied.recount()
	if copied.used != r.log.used || copied.sum != r.log.sum {
		return fmt.Errorf("%d of %d count, want %d of %d", r.log.used, r.log.sum, copied.used, copied.sum)
	}
	if len(r.log.ring) > remembered {
		return fmt.Errorf("%d entries", len(r.log.ring))
	}
	return nil
}

func anyWindow(rng *rand.Rand) Window {
	amounts := []int64{1, 3, 20, 1000, 1023, 1024, 5000, 2_000_000, 1 << 40}
	return Window{1 + rng.Int64N(amounts[rng.IntN(len(amounts))]), time.Duration(1 + upTo(rng, 1<<40))}
}

// In any sequence of grants, waits, returns and pauses, no window exceeds the amount. A small log is exact. In a
// large one no call waits longer than if calls of one grain had been one call.
func TestNoWindowSeesMoreThanItsAmount(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := newLogRun(rng, anyWindow(rng))
		r.dearest = max(1, r.log.Amount/(1+rng.Int64N(3000)))
		for step := range 60 {
			if err := r.step(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		return overWindow(r.went, r.log.Window)
	})
}

// A log that is always full of calls: as many as fit, as many waiting, and all of them small.
func TestAFullLogIsExactAndBounded(t *testing.T) {
	cases(t, 12, func(rng *rand.Rand) error {
		amounts := []int64{1000, 1023, 1024, 5000, 100_000}
		r := newLogRun(rng, Window{amounts[rng.IntN(len(amounts))], time.Minute})
		r.dearest = 1 + r.log.Amount/2000
		each := time.Minute / time.Duration(r.log.Amount/r.dearest*2)
		for i := range 8000 {
			if err := r.advance(r.now + time.Duration(rng.Int64N(int64(each)))); err != nil {
				return err
			}
			if rng.IntN(3) == 0 {
				r.back()
			}
			if err := r.take(); err != nil {
				return err
			}
			if i%100 == 0 {
				if err := r.sound(); err != nil {
					return err
				}
			}
		}
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		return overWindow(r.went, r.log.Window)
	})
}

// No window after a change exceeds the new amount.
func TestAChangedWindowHoldsFromThenOn(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := newLogRun(rng, Window{1 + rng.Int64N(20), time.Duration(1 + rng.Int64N(1e9))})
		for range 15 {
			if err := r.step(); err != nil {
				return err
			}
		}
		w := Window{1 + rng.Int64N(20), 1 + time.Duration(rng.Int64N(int64(r.log.Per)))}
		r.log.Set(r.now, w)
		r.dearest = w.Amount
		r.waiting = slices.DeleteFunc(r.waiting, func(g *going) bool { return g.n > w.Amount })
		first := len(r.went)
		for range 15 {
			if err := r.advance(r.now + time.Duration(upTo(rng, int64(w.Per)))); err != nil {
				return err
			}
			if m, _, ok := r.log.Take(r.now, r.paused, 1); ok {
				if err := r.goes(m, 1); err != nil {
					return err
				}
			}
		}
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		if len(r.waiting) > 0 {
			return fmt.Errorf("%d still wait", len(r.waiting))
		}
		return overWindow(r.went[first:], w)
	})
}

// A debt counts from its use, and waiting calls wait until it and all other usage fit.
func TestWhatIsOwedCountsInItsWindow(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := newLogRun(rng, anyWindow(rng))
		r.dearest = max(1, r.log.Amount/(1+rng.Int64N(20)))
		for range 10 {
			if err := r.step(); err != nil {
				return err
			}
		}
		before := time.Duration(0)
		if len(r.waiting) > 0 {
			before = r.log.Ask(r.now, r.paused, r.waiting[0].n)
		}
		owed := 1 + rng.Int64N(2*r.log.Amount)
		r.log.Owe(r.now, owed)
		debt := &going{n: owed, at: r.now}
		if len(r.waiting) > 0 && r.log.Ask(r.now, r.paused, r.waiting[0].n) < before {
			return errors.New("a debt lets those who wait go sooner")
		}
		if r.log.Left(r.now) > max(0, r.log.Amount-owed) {
			return fmt.Errorf("%d left of %d after %d were owed", r.log.Left(r.now), r.log.Amount, owed)
		}
		if at := r.log.Ask(r.now, 0, r.log.Amount); at < r.log.Per {
			return fmt.Errorf("all goes in %v although some are owed now", at)
		}
		went := len(r.went)
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		after := append([]*going{{n: min(debt.n, r.log.Amount), at: debt.at}}, r.went[went:]...)
		return overWindow(after, r.log.Window)
	})
}

func TestUnitsAPeriodApartStandInDifferentWindows(t *testing.T) {
	g := NewLog(Window{1, time.Minute})
	g.Take(0, 0, 1)
	if _, wait, ok := g.Take(time.Minute-1, 0, 1); ok || wait != 1 {
		t.Errorf("1 ns early: got %v, %v", wait, ok)
	}
	if _, wait, ok := g.Take(time.Minute, 0, 1); !ok || wait != 0 {
		t.Errorf("a minute later: got %v, %v", wait, ok)
	}
}

// Calls that share an entry count until the last of them leaves the window.
func TestCallsOfOneGrainCountFromTheLastOfThem(t *testing.T) {
	w := Window{2 * remembered, time.Second}
	g := NewLog(w)
	first := 10 * w.grain()
	last := first + w.grain() - 1
	g.Take(first, 0, 1)
	g.Take(last, 0, w.Amount-1)
	if _, wait, ok := g.Take(first+w.Per, 0, 2); ok || wait != last-first {
		t.Errorf("when the first has left: %v, %v; want a wait of %v", wait, ok, last-first)
	}
	if _, _, ok := g.Take(last+w.Per, 0, w.Amount); !ok {
		t.Error("when all have left nothing goes")
	}
}

// A waiting call proceeds at its predicted instant, also if the usage that leaves the window is of one grain and the
// new usage is not.
func TestWhoWaitsGoesWhenItWasTold(t *testing.T) {
	const calls, waiters = 900, 300 // together more than a log stores separately
	w := Window{2 * remembered, time.Second}
	g := NewLog(w)
	grain := w.grain()
	// Two neighbors of different grains whose turns a window later are of one grain.
	a, b := 10*grain-w.Per%grain/4, 10*grain
	for ; (a+w.Per)/grain != (b+w.Per)/grain && a < b; a++ {
	}
	if a >= b {
		t.Fatal("no such neighbours")
	}
	g.Take(a, 0, 1)
	g.Take(b, 0, 1)
	for i := range int64(calls - 2) {
		g.Take(b+grain*time.Duration(i+1), 0, 1)
	}
	now := b + calls*grain
	g.Take(now, 0, w.Amount-calls)
	for i := range waiters {
		now += g.Ask(now, 0, 1)
		if _, wait, ok := g.Take(now, 0, 1); !ok {
			t.Fatalf("waiter %d still has to wait %v", i, wait)
		}
	}
}

// A call that is returned completely counts as never made: all units are available when the rest has left.
func TestAllIsThereWhenTheRestHasLeft(t *testing.T) {
	g := NewLog(Window{10, time.Minute})
	g.Take(0, 0, 5)
	m, _, _ := g.Take(time.Second, 0, 3)
	g.Back(m, 3)
	if reset := g.Reset(time.Second); reset != 59*time.Second {
		t.Errorf("all is there again in %v, want 59s", reset)
	}
}

// Two goroutines read the clock in one order and ask in the other. Neither is refused for that.
func TestAClockReadEarlierIsNotRefused(t *testing.T) {
	g := NewLog(Window{10, time.Minute})
	for _, now := range []time.Duration{100, 99, 50} {
		if _, wait, ok := g.Take(now, 0, 1); !ok || wait != 0 {
			t.Errorf("at %v: %v, %v", now, wait, ok)
		}
	}
}

func TestALogThatIsFullAllocatesNothing(t *testing.T) {
	for _, amount := range []int64{5, 1000, 5000} {
		g, now := NewLog(Window{amount, time.Minute}), time.Duration(0)
		step := time.Minute / time.Duration(amount) * 9 / 10
		take := func() { g.Take(now, 0, 1); now += step }
		for range 3 * amount {
			take()
		}
		if n := testing.AllocsPerRun(2000, take); n != 0 {
			t.Errorf("%d a minute: %v allocations a call", amount, n)
		}
	}
}

func TestALogMeetsACostOfNothing(t *testing.T) {
	g := NewLog(Window{1, time.Minute})
	g.Take(0, 0, 1)
	if _, wait, ok := g.Take(0, 0, 0); !ok || wait != 0 {
		t.Errorf("got %v, %v", wait, ok)
	}
	for _, n := range []int64{-1, 2} {
		if _, wait, ok := g.Take(0, 0, n); ok || wait != Never {
			t.Errorf("take %d: got %v, %v", n, wait, ok)
		}
	}
}

// A later call cannot return a debt of the meantime.
func TestADebtIsNobodysToGiveBack(t *testing.T) {
	g := NewLog(Window{10, time.Second})
	g.Take(0, 0, 5)
	g.Owe(500*time.Millisecond, 2)
	m, _, ok := g.Take(500*time.Millisecond, 0, 3)
	if back := g.Back(m, 3); !ok || back != 3 {
		t.Fatalf("%v, %d came back", ok, back)
	}
	if left := g.Left(time.Second); left != 8 {
		t.Errorf("%d left when the first have left the window, want 8", left)
	}
}
