package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// A going is units that went, or will go when their turn comes.
type going struct {
	mark Mark
	n    int64
	at   time.Duration
}

// overWindow looks at every half-open window that ends with a going.
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

// A logRun is a random history of a log, and what really went.
type logRun struct {
	rng     *rand.Rand
	log     Log
	dearest int64
	now     time.Duration
	paused  time.Duration
	waiting []*going
	went    []*going
	left    []*going // those who waited when a pause was lifted
}

func newLogRun(rng *rand.Rand, w Window) *logRun {
	return &logRun{rng: rng, log: NewLog(w), dearest: w.Amount, now: time.Duration(rng.Int64N(1 << 40))}
}

// advance lets those go whose turn comes on the way to the instant, in order.
func (r *logRun) advance(to time.Duration) error {
	for len(r.waiting) > 0 {
		g := r.waiting[0]
		at, ok := r.log.When(g.mark)
		if !ok {
			return errors.New("one who waits is not in the log any more")
		}
		if at > to {
			break
		}
		if len(r.waiting) > 1 {
			if next, _ := r.log.When(r.waiting[1].mark); next < at {
				return fmt.Errorf("one who asked later goes at %v, before %v", next, at)
			}
		}
		if at < r.paused && r.now < r.paused {
			return fmt.Errorf("goes at %v, in a pause until %v", at, r.paused)
		}
		if d := r.log.Due(at, g.mark); d != 0 {
			return fmt.Errorf("still has to wait %v when its turn has come", d)
		}
		g.at = at
		r.went, r.waiting = append(r.went, g), r.waiting[1:]
	}
	r.now = to
	return nil
}

// used is what went in a window of the length up to now, and what waits.
func (r *logRun) used(per time.Duration) (sum int64) {
	for i := len(r.went) - 1; i >= 0 && r.went[i].at > r.now-per; i-- {
		sum += r.went[i].n
	}
	for _, g := range r.waiting {
		sum += g.n
	}
	return sum
}

func (r *logRun) take() error {
	n := 1 + r.rng.Int64N(r.dearest)
	patience := time.Duration(r.rng.IntN(2)) * time.Duration(r.rng.Int64N(int64(5*r.log.Per)))
	left := r.log.Left(r.now)
	said := r.log.Ask(r.now, r.paused, n)
	m, wait, ok := r.log.Take(r.now, r.paused, n, patience)
	switch {
	case wait != said:
		return fmt.Errorf("told to wait %v and then %v", said, wait)
	case !ok && wait <= patience && len(r.waiting) < mostWaiting:
		return fmt.Errorf("refused a wait of %v with a patience of %v", wait, patience)
	case ok && wait == 0 && left < n:
		return fmt.Errorf("%d went at once although %d were left", n, left)
	case !ok && r.log.Left(r.now) != left:
		return errors.New("a refusal changed what is left")
	case wait > 0 && len(r.waiting) == 0 && r.now >= r.paused && r.used(r.log.Per+r.log.grain)+n <= r.log.Amount:
		return fmt.Errorf("%d have to wait for %v although %d of %d went", n, wait, r.used(r.log.Per), r.log.Amount)
	case !ok:
		return nil
	}
	g := &going{mark: m, n: n, at: r.now + wait}
	r.waiting = append(r.waiting, g)
	return r.advance(r.now)
}

// back gives some of a going back. Those of which nothing is left are as if they had
// never been.
func (r *logRun) back() {
	of := &r.went
	if len(r.waiting) > 0 && r.rng.IntN(2) == 0 {
		of = &r.waiting
	}
	if len(*of) == 0 {
		return
	}
	i := len(*of) - 1 - min(r.rng.IntN(len(*of)), r.rng.IntN(50))
	g := (*of)[max(0, i)]
	n := g.n
	if r.rng.IntN(2) == 0 {
		n = r.rng.Int64N(g.n + 1)
	}
	if _, ok := r.log.When(g.mark); !ok && g.at > r.now-r.log.Per {
		panic("forgotten")
	}
	if g.n -= r.log.Back(g.mark, n); g.n == 0 {
		*of = append((*of)[:max(0, i):max(0, i)], (*of)[max(0, i)+1:]...)
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
		r.log.Replan(r.now, r.paused)
	case 6:
		if r.rng.IntN(4) == 0 {
			r.lift()
		}
	default:
		if err := r.take(); err != nil {
			return err
		}
	}
	return r.sound()
}

func (r *logRun) lift() {
	r.log.Here(r.now)
	r.left, r.waiting, r.paused = append(r.left, r.waiting...), nil, r.now
}

// sound looks at what a log says of itself.
func (r *logRun) sound() error {
	for i := 0; i < len(r.left); i += 1 + r.rng.IntN(20) {
		g := r.left[i]
		if at, ok := r.log.When(g.mark); ok || r.log.Back(g.mark, g.n) > 0 {
			return fmt.Errorf("one who has to ask anew still goes at %v", at)
		}
	}
	if left := r.log.Left(r.now); left != max(0, r.log.Amount-r.log.sum) || left > r.log.Amount {
		return fmt.Errorf("%d left of %d", left, r.log.Amount)
	}
	var ahead int64
	for _, g := range r.waiting {
		ahead += g.n
	}
	if got := r.log.Ahead(r.now); got != ahead {
		return fmt.Errorf("%d are booked, want %d", got, ahead)
	}
	if r.log.grain == 0 && r.log.sum != r.used(r.log.Per) {
		return fmt.Errorf("counts %d, want %d", r.log.sum, r.used(r.log.Per))
	}
	copied := r.log.Clone()
	copied.recount()
	if copied.used != r.log.used || copied.sum != r.log.sum {
		return fmt.Errorf("%d of %d count, want %d of %d", r.log.used, r.log.sum, copied.used, copied.sum)
	}
	if len(r.log.ring) > remembered+mostWaiting {
		return fmt.Errorf("%d entries", len(r.log.ring))
	}
	return nil
}

func anyWindow(rng *rand.Rand) Window {
	amounts := []int64{1, 3, 20, 1000, 1023, 1024, 5000, 2_000_000, 1 << 40}
	return Window{1 + rng.Int64N(amounts[rng.IntN(len(amounts))]), time.Duration(1 + upTo(rng, 1<<40))}
}

// Whatever is taken, booked and comes back, in whatever pauses: no window has more than
// the amount; a small log is exact, and of a large one nobody waits longer than if calls
// of one grain had been one call.
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

// A log that is always full of calls: as many as fit, as many as wait, and all of them
// small.
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

// With another window those who wait keep their order and none goes earlier than
// it was told; no window after the change sees more than the new amount, but for
// a single one that costs more.
func TestAChangedWindowHoldsFromThenOn(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := newLogRun(rng, Window{1 + rng.Int64N(20), time.Duration(1 + rng.Int64N(1e9))})
		for range 15 {
			if err := r.step(); err != nil {
				return err
			}
		}
		w := Window{1 + rng.Int64N(20), 1 + time.Duration(rng.Int64N(int64(r.log.Per)))}
		told := map[*going]time.Duration{}
		most := w.Amount
		for _, g := range r.waiting {
			told[g], _ = r.log.When(g.mark)
			most = max(most, g.n)
		}
		r.log.Set(r.now, r.paused, w)
		r.dearest = w.Amount
		for g, before := range told {
			if at, _ := r.log.When(g.mark); at < before {
				return fmt.Errorf("one who was told %v goes at %v", before, at)
			}
		}
		first := len(r.went)
		for range 15 {
			if err := r.advance(r.now + time.Duration(upTo(rng, int64(w.Per)))); err != nil {
				return err
			}
			if _, _, ok := r.log.Take(r.now, r.paused, 1, 0); ok {
				r.went = append(r.went, &going{n: 1, at: r.now})
			}
		}
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		return overWindow(r.went[min(first, len(r.went)):], Window{most, w.Per})
	})
}

// What is owed counts from when it was used, and those who wait do so until it and all
// else is few enough.
func TestWhatIsOwedCountsInItsWindow(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		r := newLogRun(rng, anyWindow(rng))
		r.dearest = max(1, r.log.Amount/(1+rng.Int64N(20)))
		for range 10 {
			if err := r.step(); err != nil {
				return err
			}
		}
		told := map[*going]time.Duration{}
		for _, g := range r.waiting {
			told[g], _ = r.log.When(g.mark)
		}
		owed := 1 + rng.Int64N(2*r.log.Amount)
		r.log.Owe(r.now, owed)
		debt := &going{n: owed, at: r.now}
		for g, before := range told {
			if at, ok := r.log.When(g.mark); at < before || !ok {
				return fmt.Errorf("one who was told %v goes at %v, %v", before, at, ok)
			}
		}
		if r.log.Left(r.now) > max(0, r.log.Amount-owed) {
			return fmt.Errorf("%d left of %d after %d were owed", r.log.Left(r.now), r.log.Amount, owed)
		}
		if at := r.log.Ask(r.now, 0, r.log.Amount); at < r.log.Per {
			return fmt.Errorf("all goes in %v although some are owed now", at)
		}
		before := len(r.went)
		if err := r.advance(Never / 4); err != nil {
			return err
		}
		after := append([]*going{{n: min(debt.n, r.log.Amount), at: debt.at}}, r.went[before:]...)
		return overWindow(after, r.log.Window)
	})
}

// What is not in the log any more has come: so nobody who waits may be forgotten.
func TestALogRefusesRatherThanForgetWhoWaits(t *testing.T) {
	g := NewLog(Window{1, time.Second})
	var marks []Mark
	for i := range 2 * mostWaiting {
		m, wait, ok := g.Take(0, 0, 1, Never-1)
		if ok != (i <= mostWaiting) { // the first does not wait
			t.Fatalf("caller %d: %v, wait %v", i, ok, wait)
		}
		if ok {
			marks = append(marks, m)
		}
	}
	for i, m := range marks {
		if at, ok := g.When(m); !ok || at != time.Duration(i)*time.Second {
			t.Fatalf("caller %d goes at %v, %v", i, at, ok)
		}
	}
}

func TestUnitsAPeriodApartStandInDifferentWindows(t *testing.T) {
	g := NewLog(Window{1, time.Minute})
	g.Take(0, 0, 1, 0)
	if _, wait, ok := g.Take(time.Minute-1, 0, 1, 0); ok || wait != 1 {
		t.Errorf("1 ns early: got %v, %v", wait, ok)
	}
	if _, wait, ok := g.Take(time.Minute, 0, 1, 0); !ok || wait != 0 {
		t.Errorf("a minute later: got %v, %v", wait, ok)
	}
}

// Calls that are remembered together count until the last of them leaves the window.
func TestCallsOfOneGrainCountFromTheLastOfThem(t *testing.T) {
	w := Window{2 * remembered, time.Second}
	g := NewLog(w)
	first := 10 * w.grain()
	last := first + w.grain() - 1
	g.Take(first, 0, 1, 0)
	g.Take(last, 0, w.Amount-1, 0)
	if _, wait, ok := g.Take(first+w.Per, 0, 2, 0); ok || wait != last-first {
		t.Errorf("when the first has left: %v, %v; want a wait of %v", wait, ok, last-first)
	}
	if _, _, ok := g.Take(last+w.Per, 0, w.Amount, 0); !ok {
		t.Error("when all have left nothing goes")
	}
}

// Who was told an instant goes then, however many wait behind, and whoever waits for one
// that is hardly later.
func TestWhoWaitsGoesWhenItWasTold(t *testing.T) {
	const calls, waiters = 900, 300 // together more than a log tells apart
	w := Window{2 * remembered, time.Second}
	g := NewLog(w)
	grain := w.grain()
	// Two neighbours of different grains, whose turns a window later are of one.
	a, b := 10*grain-w.Per%grain/4, 10*grain
	for ; (a+w.Per)/grain != (b+w.Per)/grain && a < b; a++ {
	}
	if a >= b {
		t.Fatal("no such neighbours")
	}
	g.Take(a, 0, 1, 0)
	g.Take(b, 0, 1, 0)
	for i := range int64(calls - 2) {
		g.Take(b+grain*time.Duration(i+1), 0, 1, 0)
	}
	now := b + calls*grain
	g.Take(now, 0, w.Amount-calls, 0)
	told := make(map[Mark]time.Duration)
	for range waiters {
		m, wait, ok := g.Take(now, 0, 1, time.Hour)
		if !ok {
			t.Fatal("refused")
		}
		told[m] = now + wait
	}
	if len(told) != waiters {
		t.Errorf("%d waiters have %d marks", waiters, len(told))
	}
	for m, at := range told {
		if got, ok := g.When(m); !ok || got != at {
			t.Errorf("told %v, goes at %v, %v", at, got, ok)
		}
	}
}

// Two goroutines look at the clock in one order and ask in the other: neither is refused
// for that.
func TestAClockReadEarlierIsNotRefused(t *testing.T) {
	g := NewLog(Window{10, time.Minute})
	for _, now := range []time.Duration{100, 99, 50} {
		if _, wait, ok := g.Take(now, 0, 1, 0); !ok || wait != 0 {
			t.Errorf("at %v: %v, %v", now, wait, ok)
		}
	}
}

func TestALogThatIsFullAllocatesNothing(t *testing.T) {
	for _, amount := range []int64{5, 1000, 5000} {
		g, now := NewLog(Window{amount, time.Minute}), time.Duration(0)
		step := time.Minute / time.Duration(amount) * 9 / 10
		take := func() { g.Take(now, 0, 1, 0); now += step }
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
	g.Take(0, 0, 1, 0)
	if _, wait, ok := g.Take(0, 0, 0, 0); !ok || wait != 0 {
		t.Errorf("got %v, %v", wait, ok)
	}
	for _, n := range []int64{-1, 2} {
		if _, wait, ok := g.Take(0, 0, n, Never); ok || wait != Never {
			t.Errorf("take %d: got %v, %v", n, wait, ok)
		}
	}
}

// What was owed meanwhile is not what a call gives back that comes after.
func TestADebtIsNobodysToGiveBack(t *testing.T) {
	g := NewLog(Window{10, time.Second})
	g.Take(0, 0, 5, 0)
	later, _, _ := g.Take(0, 0, 10, time.Minute)
	g.Owe(500*time.Millisecond, 2)
	g.Back(later, 10)
	m, _, ok := g.Take(500*time.Millisecond, 0, 3, 0)
	if back := g.Back(m, 3); !ok || back != 3 {
		t.Fatalf("%v, %d came back", ok, back)
	}
	if left := g.Left(time.Second); left != 8 {
		t.Errorf("%d left when the first have left the window, want 8", left)
	}
}
