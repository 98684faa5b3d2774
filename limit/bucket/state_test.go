package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// takeKeepsLimit takes anything at any time. Waiting calls proceed at their turn.
func takeKeepsLimit(rng *rand.Rand) error {
	r := anyRate(rng)
	now := time.Duration(rng.Int64N(int64(thirtyYears) / 64))
	l := NewLine(now, r)
	s, v := l.Fresh(now), newLevel(now, r)
	gap := upTo(rng, 1<<50)
	for range 60 {
		n := min(upTo(rng, r.Full()), 1+rng.Int64N(l.Full()))
		next, wait, ok := s.Take(&l, now, n)
		if left := s.Left(&l, now); ok != (left >= n) || ok != (wait == 0) {
			return fmt.Errorf("%v: %d units are left, and taking %d waits %v, %v", r, left, n, wait, ok)
		}
		if !ok && next != s {
			return fmt.Errorf("%v: a refusal changed the state", r)
		}
		if !ok && rng.IntN(2) == 0 && wait < Never-now {
			if _, _, early := s.Take(&l, now+wait-1, n); early {
				return fmt.Errorf("%v: %d units are there before the wait of %v is over", r, n, wait)
			}
			now += wait
			if next, _, ok = s.Take(&l, now, n); !ok {
				return fmt.Errorf("%v: %d units are not there after the wait of %v", r, n, wait)
			}
		}
		if s = next; ok {
			if err := v.use(now, n); err != nil {
				return fmt.Errorf("%v: %w", r, err)
			}
		}
		now += time.Duration(rng.Int64N(gap))
	}
	return nil
}

func TestTakeKeepsLimit(t *testing.T) { cases(t, 3000, takeKeepsLimit) }

func FuzzTakeKeepsLimit(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		if err := takeKeepsLimit(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Errorf("seed %#x: %v", seed, err)
		}
	})
}

// A bucket of whole tokens that updates its time on a denial would grant nothing to a caller that polls faster than
// the rate.
func TestPollingLosesNothing(t *testing.T) {
	for _, r := range rates {
		if r.PerSecond() < 0.05 || r.PerSecond() > 1e6 {
			continue
		}
		l := NewLine(0, r)
		s := l.Fresh(0)
		var got int64
		span := 60 * time.Second
		step := time.Duration(float64(time.Second) / r.PerSecond() / 10)
		for now := time.Duration(0); now <= span; now += step {
			next, _, ok := s.Take(&l, now, 1)
			if s = next; ok {
				got++
			}
		}
		want := int64(r.PerSecond()*60) + r.Full()
		if got < want-1 || got > want+1 {
			t.Errorf("%v: 60 s of polling gave %d, want %d", r, got, want)
		}
	}
}

func TestTakingAllThatIsLeftLosesNothing(t *testing.T) {
	for _, r := range rates {
		l := NewLine(0, r)
		if r.Full() < 3 || l.Depth() > 1<<50 {
			continue // no caller can use the time in which a small bucket is full
		}
		s := l.Fresh(0)
		var got int64
		step := max(time.Duration(r.Full()*int64(r.Per)/r.Amount/3), 1)
		for k := range time.Duration(3000) {
			n := s.Left(&l, k*step)
			next, wait, ok := s.Take(&l, k*step, n)
			if !ok {
				t.Fatalf("%v: %d are left but taking them waits %v", r, n, wait)
			}
			s, got = next, got+n
		}
		span := (2999 * step).Seconds()
		want := float64(r.Full()) + r.PerSecond()*span
		if lost := want - float64(got); lost < -1 || lost > 1+want/1e9 {
			t.Errorf("%v: got %d in %v s, want %.3f", r, got, span, want)
		}
	}
}

func TestTakeRefusesWhatCannotBe(t *testing.T) {
	l := NewLine(0, Rate{10, time.Second, 5})
	s := l.Fresh(0)
	for _, n := range []int64{-1, 6, 1 << 62, -1 << 63} {
		if next, wait, ok := s.Take(&l, 0, n); ok || wait != Never || next != s {
			t.Errorf("take %d: got %v, %v", n, wait, ok)
		}
	}
	empty := l.Empty(0)
	if next, wait, ok := empty.Take(&l, 0, 0); !ok || wait != 0 || next != empty {
		t.Errorf("take 0: got %v, %v, want yes", wait, ok)
	}
	if _, wait, ok := empty.Take(&l, 0, 1); ok || wait != 100*time.Millisecond {
		t.Errorf("take 1: got %v, %v; want no, in 100ms", wait, ok)
	}
}

func BenchmarkTake(b *testing.B) {
	l := NewLine(0, Rate{1e9, time.Second, 1})
	s := l.Fresh(0)
	var now time.Duration
	for b.Loop() {
		now += 2
		s, _, _ = s.Take(&l, now, 1)
	}
}
