package bucket

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// A going is units that went, or will go when their turn comes.
type going struct {
	mark Mark
	n    int64
	at   time.Duration
	gone bool
}

// overWindow looks at every half-open window that ends with a going.
func overWindow(all []*going, w Window) error {
	for i, last := range all {
		var sum int64
		for _, g := range all[:i+1] {
			if g.at > last.at-w.Per {
				sum += g.n
			}
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
	w       Window
	log     Log
	now     time.Duration
	paused  time.Duration
	waiting []*going
	went    []*going
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
		for _, later := range r.waiting[1:] {
			if other, _ := r.log.When(later.mark); other < at {
				return fmt.Errorf("one who asked later goes at %v, before %v", other, at)
			}
		}
		if at < r.paused && r.now < r.paused {
			return fmt.Errorf("goes at %v, in a pause until %v", at, r.paused)
		}
		g.at, g.gone = at, true
		r.went, r.waiting = append(r.went, g), r.waiting[1:]
	}
	r.now = to
	return nil
}

func (r *logRun) take() error {
	n := 1 + r.rng.Int64N(r.w.Amount)
	start := max(r.now, r.paused)
	patience := time.Duration(r.rng.IntN(2)) * time.Duration(r.rng.Int64N(int64(5*r.w.Per)))
	left := r.log.Left(r.w, start)
	next, mark, wait, ok := r.log.Take(r.w, start, n, patience)
	switch {
	case !ok && !reflect.DeepEqual(next, r.log):
		return errors.New("a refusal changed the log")
	case !ok && wait <= patience:
		return fmt.Errorf("refused a wait of %v with a patience of %v", wait, patience)
	case ok && wait == 0 && left < n:
		return fmt.Errorf("%d went at once although %d were left", n, left)
	case !ok && wait > patience && len(r.waiting) == 0 && left >= n && !r.gaveBack():
		return fmt.Errorf("%d were refused although %d were left and nobody waits", n, left)
	case !ok:
		return nil
	}
	r.log = next
	g := &going{mark: mark, n: n}
	r.waiting = append(r.waiting, g)
	return r.advance(r.now)
}

func (r *logRun) gaveBack() bool { return false }

func (r *logRun) back() {
	all := append(append([]*going{}, r.went...), r.waiting...)
	if len(all) == 0 {
		return
	}
	g := all[r.rng.IntN(len(all))]
	n := g.n
	if r.rng.IntN(2) == 0 {
		n = r.rng.Int64N(g.n + 1)
	}
	next, back := r.log.Back(g.mark, n)
	r.log = next
	if g.n -= back; g.n == 0 {
		r.waiting = remove(r.waiting, g)
		r.went = remove(r.went, g)
	}
}

func remove(from []*going, g *going) (rest []*going) {
	for _, x := range from {
		if x != g {
			rest = append(rest, x)
		}
	}
	return rest
}

func (r *logRun) step() error {
	if err := r.advance(r.now + time.Duration(upTo(r.rng, int64(r.w.Per)))); err != nil {
		return err
	}
	before := Log{append([]mark{}, r.log.marks...), r.log.seq}
	kept := r.log
	switch r.rng.IntN(12) {
	case 0, 1:
		r.back()
	case 2:
		r.paused = max(r.paused, r.now+time.Duration(r.rng.Int64N(int64(r.w.Per))))
		r.log = r.log.Replan(r.w, r.now, r.paused)
	default:
		if err := r.take(); err != nil {
			return err
		}
	}
	if len(before.marks) > 0 && !reflect.DeepEqual(before, kept) {
		return errors.New("an older log changed")
	}
	if left := r.log.Left(r.w, r.now); left < 0 || left > r.w.Amount {
		return fmt.Errorf("%d left of %d", left, r.w.Amount)
	}
	return nil
}

func TestNoWindowSeesMoreThanItsAmount(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := &logRun{rng: rng, w: Window{1 + rng.Int64N(20), time.Duration(1 + upTo(rng, 1<<40))}, now: time.Duration(rng.Int64N(1 << 40))}
		for step := range 80 {
			if err := r.step(); err != nil {
				return fmt.Errorf("step %d: %w", step, err)
			}
		}
		if err := r.advance(Never); err != nil {
			return err
		}
		return overWindow(r.went, r.w)
	})
}

// With another window those who wait keep their order and none goes earlier than
// it was told; no window after the change sees more than the new amount, but for
// a single one that costs more.
func TestAChangedWindowHoldsFromThenOn(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := &logRun{rng: rng, w: Window{1 + rng.Int64N(20), time.Duration(1 + rng.Int64N(1e9))}}
		for range 30 {
			if err := r.step(); err != nil {
				return err
			}
		}
		w := Window{1 + rng.Int64N(20), 1 + time.Duration(rng.Int64N(int64(r.w.Per)))}
		told := map[*going]time.Duration{}
		most := w.Amount
		for _, g := range r.waiting {
			told[g], _ = r.log.When(g.mark)
			most = max(most, g.n)
		}
		r.w, r.log = w, r.log.Replan(w, r.now, r.paused)
		for g, before := range told {
			if at, _ := r.log.When(g.mark); at < before {
				return fmt.Errorf("one who was told %v goes at %v", before, at)
			}
		}
		first := len(r.went)
		for range 30 {
			if err := r.step(); err != nil {
				return err
			}
		}
		if err := r.advance(Never); err != nil {
			return err
		}
		return overWindow(r.went[min(first, len(r.went)):], Window{most, w.Per})
	})
}

func TestALogForgetsTheOldestByTakingThemTogether(t *testing.T) {
	w := Window{3 * Remembered, time.Hour}
	var g Log
	var went []*going
	for i := range time.Duration(3*Remembered + 500) {
		next, _, wait, ok := g.Take(w, i*time.Millisecond, 1, 0)
		if g = next; ok {
			went = append(went, &going{n: 1, at: i*time.Millisecond + wait})
		}
	}
	if len(g.marks) > Remembered {
		t.Errorf("remembers %d, want at most %d", len(g.marks), Remembered)
	}
	if int64(len(went)) != w.Amount {
		t.Errorf("%d went, want %d", len(went), w.Amount)
	}
	if _, _, wait, _ := g.Take(w, time.Minute, 1, 0); wait < time.Hour-time.Minute {
		t.Errorf("the next goes in %v, before the oldest leaves the window", wait)
	}
}

// What is not in the log any more has come: so nobody who waits may be forgotten.
func TestALogRefusesRatherThanForgetWhoWaits(t *testing.T) {
	w := Window{1, time.Second}
	var g Log
	var marks []Mark
	for i := range 2 * Remembered {
		next, m, wait, ok := g.Take(w, 0, 1, Never-1)
		if ok != (i < Remembered) {
			t.Fatalf("caller %d: %v, wait %v", i, ok, wait)
		}
		if g = next; ok {
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
	w := Window{1, time.Minute}
	g, _, _, _ := Log{}.Take(w, 0, 1, 0)
	if _, _, wait, ok := g.Take(w, time.Minute-1, 1, 0); ok || wait != 1 {
		t.Errorf("1 ns early: got %v, %v", wait, ok)
	}
	if _, _, wait, ok := g.Take(w, time.Minute, 1, 0); !ok || wait != 0 {
		t.Errorf("a minute later: got %v, %v", wait, ok)
	}
}

func TestANoFromALogAllocatesNothing(t *testing.T) {
	w := Window{1, time.Minute}
	g, _, _, _ := Log{}.Take(w, 0, 1, 0)
	if n := testing.AllocsPerRun(100, func() { g.Take(w, 0, 1, 0) }); n != 0 {
		t.Errorf("a refusal allocates %v times", n)
	}
}

func TestALogMeetsACostOfNothing(t *testing.T) {
	w := Window{1, time.Minute}
	g, _, _, _ := Log{}.Take(w, 0, 1, 0)
	if _, _, wait, ok := g.Take(w, 0, 0, 0); !ok || wait != 0 {
		t.Errorf("got %v, %v", wait, ok)
	}
	for _, n := range []int64{-1, 2} {
		if _, _, wait, ok := g.Take(w, 0, n, Never); ok || wait != Never {
			t.Errorf("take %d: got %v, %v", n, wait, ok)
		}
	}
}
