package bucket

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"
)

const thirtyYears = 30 * 366 * 24 * time.Hour

// checkLine checks that a line never runs backwards and that When is the exact inverse of At, around the instant.
func checkLine(l *Line, now time.Duration, ahead int64) error {
	at := l.At(now)
	if next := l.At(now + 1); next < at {
		return fmt.Errorf("at %d there is %d, one later %d", now, at, next)
	}
	for _, p := range []int64{at - 1, at, at + 1, at + l.unit, at + l.depth, at + ahead} {
		when := l.When(p)
		if when == Never {
			continue
		}
		if l.At(when) < p {
			return fmt.Errorf("place %d is said to be there at %d, where there is %d", p, when, l.At(when))
		}
		if when > l.from && l.At(when-1) >= p {
			return fmt.Errorf("place %d is said to be there at %d, and is one earlier", p, when)
		}
		if wait := l.Wait(now, p); wait < 0 || wait > 0 && now+wait != when || wait == 0 && when > now {
			return fmt.Errorf("place %d at %d: when %d but wait %d", p, now, when, wait)
		}
	}
	return nil
}

// anyLine applies thirty years of changes to a line. No position may be available earlier than the fastest rate so
// far allows.
func anyLine(rng *rand.Rand, start time.Duration) error {
	r := anyRate(rng)
	l := NewLine(start, r)
	now := start
	for step := range 40 {
		if err := checkLine(&l, now, upTo(rng, 1<<60)); err != nil {
			return fmt.Errorf("%v, step %d, line %+v: %w", r, step, l, err)
		}
		before, stale := l, false // a stale change may set the line back
		switch rng.IntN(5) {
		case 0:
			l = l.Pause(now, now+time.Duration(upTo(rng, 1<<50)))
		case 1:
			l = l.Pace(now, r.PerSecond()*rng.Float64()*1.1)
		case 2:
			l, _ = l.Change(now, Rate{max(1, min(r.Amount, math.MaxInt64/8)*int64(1+rng.IntN(8))/int64(1+rng.IntN(8))), r.Per, upTo(rng, 1000)})
		case 3: // an earlier reading: another core was faster
			stale = true
			l = l.Pause(now-time.Duration(rng.Int64N(1000)), now+time.Duration(rng.Int64N(1000)-500))
		}
		if a, b := before.At(now), l.At(now); a < b || a != b && !stale {
			return fmt.Errorf("%v, step %d: a change moved the line from %d to %d: %+v became %+v", r, step, a, b, before, l)
		}
		for _, d := range []time.Duration{1, 100, 1e6} {
			if before.speed >= l.speed && before.At(now+d) < l.At(now+d)-1 {
				return fmt.Errorf("%v, step %d: the line was put ahead: %+v became %+v", r, step, before, l)
			}
		}
		now = min(now+time.Duration(upTo(rng, 1<<56)), start+thirtyYears)
	}
	return nil
}

func TestLine(t *testing.T) {
	cases(t, 3000, func(rng *rand.Rand) error { return anyLine(rng, 0) })
	cases(t, 3000, func(rng *rand.Rand) error { return anyLine(rng, thirtyYears) })
}

func FuzzLine(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, int64(seed)*1e9)
	}
	f.Fuzz(func(t *testing.T, seed uint64, start int64) {
		if start < 0 || start > int64(thirtyYears) {
			return
		}
		if err := anyLine(rand.New(rand.NewPCG(seed, 1)), time.Duration(start)); err != nil {
			t.Errorf("seed %#x start %d: %v", seed, start, err)
		}
	})
}

func TestNoLineRunsFasterThanItsRate(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := anyRate(rng)
		l := NewLine(0, r)
		d := upTo(rng, 1<<50)
		units := big.NewRat(l.At(time.Duration(d)), l.Unit())
		if exact := new(big.Rat).Mul(big.NewRat(r.Amount, int64(r.Per)), big.NewRat(d, 1)); units.Cmp(exact) > 0 {
			return fmt.Errorf("%v: after %v there are %s units, want at most %s", r, time.Duration(d), units.FloatString(9), exact.FloatString(9))
		}
		return nil
	})
}

func TestAnAxisThatIsUsedUpGivesNothing(t *testing.T) {
	l := NewLine(0, Rate{63e9, time.Second, 10})
	now := thirtyYears
	if got := l.At(now); got != End-1 {
		t.Fatalf("at %d, want the last place %d", got, End-1)
	}
	s := State{l.At(now)}
	if _, wait, ok := s.Take(&l, now, 1); ok || wait != Never {
		t.Errorf("took a unit beyond the axis: wait %v, ok %v", wait, ok)
	}
}

func TestAPauseIsNeverMadeShorter(t *testing.T) {
	l := NewLine(0, Rate{10, time.Second, 10})
	l = l.Pause(100, 1000)
	l = l.Pause(200, 500)
	if until, ok := l.PausedUntil(999); !ok || until != 1000 {
		t.Errorf("paused until %d, %v; want 1000", until, ok)
	}
	if l.Paused(1000) {
		t.Error("still paused at the end of the pause")
	}
	if slow := l.Pace(300, 1); !slow.Paused(999) || slow.Paused(1000) {
		t.Error("a change of pace changed the pause")
	}
	if l = l.Pause(300, Never); l.Wait(400, l.At(400)) != Never {
		t.Error("a pause for ever ends")
	}
}

// A pause that is lifted produces nothing for its time, however old the clock reading of the caller that lifts it.
func TestALiftedPauseGivesNothingTwice(t *testing.T) {
	cases(t, 2000, func(rng *rand.Rand) error {
		r := anyRate(rng)
		l, never := NewLine(0, r), NewLine(0, r) // never is not paused
		var now time.Duration
		for step := range 30 {
			now += time.Duration(upTo(rng, 1<<30))
			read := max(0, now-time.Duration(rng.Int64N(2)*rng.Int64N(1000))) // another core was faster
			before, was := l.At(read), l
			switch rng.IntN(3) {
			case 0:
				l = l.Pause(read, read+time.Duration(upTo(rng, 1<<31)))
			case 1:
				if l = l.Resume(read); l.Paused(now) && read == now {
					return fmt.Errorf("%v, step %d: paused although it was lifted: %+v", r, step, l)
				}
			}
			if l.At(now) > never.At(now) || l.At(read) < before {
				return fmt.Errorf("%v, step %d: at %v it is %d of %d, was %d: %+v became %+v", r, step, now, l.At(now), never.At(now), before, was, l)
			}
		}
		return nil
	})
	l := NewLine(0, Rate{1000, time.Second, 10})
	l = l.Pause(time.Second, time.Hour)
	l = l.Resume(time.Minute)
	if got, want := l.At(time.Minute+time.Second), 2*int64(time.Second); got < want-1 || got > want {
		t.Errorf("a second after the lift there is %d, want %d", got, want)
	}
}

// A grant before a change of pace, on a line that another core has already moved on.
func TestAStalePauseDoesNotSetTheLineBack(t *testing.T) {
	l := NewLine(0, Rate{1e9, time.Second, 100})
	l = l.Pace(2000, 1e9)
	before := l.At(3000)
	l = l.Pause(1000, 1500)
	if got := l.At(3000); got > before {
		t.Errorf("at 3000 there is %d, before the pause it was %d", got, before)
	}
}

func TestPaceKeepsWithinBounds(t *testing.T) {
	l := NewLine(0, Rate{100, time.Second, 0})
	for _, c := range []struct{ pace, want float64 }{{50, 50}, {100, 100}, {1e12, 100}, {math.Inf(1), 100}, {0, 0}, {-5, 0}, {math.NaN(), 0}} {
		paced := l.Pace(0, c.pace)
		if got := paced.PerSecond(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("pace %v: runs at %v, want %v", c.pace, got, c.want)
		}
	}
	stopped := l.Pace(0, 0)
	if wait := stopped.Wait(0, 1e12); wait != Never && wait < 100*366*24*time.Hour {
		t.Errorf("a stopped line gives a unit after %v", wait)
	}
	early := NewLine(-time.Hour, Rate{100, time.Second, 0})
	early = early.Pace(-time.Hour, 0)
	if wait := early.Wait(-time.Hour, 1<<61); wait != Never {
		t.Errorf("before instant 0 a place that never comes is %v away", wait)
	}
}

// Floating point rounds an even pace up: after a hundred days, a line would be one position ahead.
func TestNoLineRunsFasterThanItsPace(t *testing.T) {
	check := func(r Rate, perSecond float64) error {
		l := NewLine(0, r)
		want := new(big.Rat).Mul(new(big.Rat).SetFloat64(perSecond), big.NewRat(l.unit, int64(time.Second)))
		want.Mul(want, big.NewRat(one, 1))
		floor := new(big.Int).Quo(want.Num(), want.Denom())
		if most := new(big.Int).SetUint64(l.full); floor.Cmp(most) > 0 {
			floor = most
		}
		paced := l.Pace(0, perSecond)
		if floor.Sign() > 0 && (!floor.IsUint64() || paced.speed != floor.Uint64()) {
			return fmt.Errorf("%v at %v a second: speed %d, want %s", r, perSecond, paced.speed, want.FloatString(9))
		}
		return nil
	}
	cases(t, 20_000, func(rng *rand.Rand) error {
		r := anyRate(rng)
		pace := r.PerSecond() / float64(int64(1)<<rng.IntN(31))
		return errors.Join(check(r, pace), check(r, pace*rng.Float64()), check(r, pace*rng.Float64()*1e3))
	})
	for _, pace := range []float64{math.SmallestNonzeroFloat64, 1e-300, 1e-20, 1, 1e19, 1e20, 1e300, math.MaxFloat64} {
		for _, r := range rates {
			if err := check(r, pace); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestChangeKeepsWhatIsSpokenFor(t *testing.T) {
	l := NewLine(0, Rate{100, time.Second, 10})
	next, ok := l.Change(time.Second, Rate{50, time.Second, 20})
	if !ok || next.Full() != 20 || next.Unit() != l.Unit() || next.At(time.Second) != l.At(time.Second) {
		t.Errorf("got %+v, %v", next, ok)
	}
	if got := next.PerSecond(); math.Abs(got-50) > 1e-6 {
		t.Errorf("runs at %v, want 50", got)
	}
	for _, r := range []Rate{{6500, time.Second, 10}, {1, time.Hour, 1}, {100, time.Second, 1 << 40}} {
		if next, ok := l.Change(time.Second, r); ok || next != l {
			t.Errorf("change to %v: got %+v, %v; want no change", r, next, ok)
		}
	}
}

// Positions that a smaller burst has passed stay expired: a change to and fro grants nothing.
func TestALargerBurstBringsNothingBack(t *testing.T) {
	l := NewLine(0, Rate{100, time.Second, 10})
	s := l.Fresh(0)
	l, _ = l.Change(time.Second, Rate{100, time.Second, 2})
	if left := s.Left(&l, time.Second); left != 2 {
		t.Errorf("%d left of a burst of 2", left)
	}
	l, _ = l.Change(time.Second, Rate{100, time.Second, 10})
	if left := s.Left(&l, time.Second); left != 2 {
		t.Errorf("%d left after the burst is 10 again, want the 2 that there were", left)
	}
	if left := s.Left(&l, 1040*time.Millisecond); left != 6 {
		t.Errorf("%d left 40 ms later, want 6", left)
	}
}
