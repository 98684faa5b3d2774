package counter

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// numberOf returns the bucket of a duration by the definition.
func numberOf(d time.Duration) int {
	i := int(math.Ceil(8 * math.Log2(d.Seconds())))
	for math.Exp2(float64(i-1)/8) >= d.Seconds() {
		i--
	}
	for math.Exp2(float64(i)/8) < d.Seconds() {
		i++
	}
	return i
}

// durations returns durations at the edges of buckets, and random ones of all magnitudes.
func durations(r *rand.Rand) (all []time.Duration) {
	for _, upper := range uppers[:len(uppers)-100] {
		all = append(all, max(1, upper-1), max(1, upper), upper+1)
	}
	for _, bound := range Bounds {
		all = append(all, bound-1, bound, bound+1)
	}
	for range 20_000 {
		all = append(all, 1+time.Duration(r.Int64()>>r.IntN(63)))
	}
	return append(all, math.MaxInt64)
}

func TestDurationsAreCountedInTheirBuckets(t *testing.T) {
	seed := rand.Uint64()
	for _, d := range durations(rand.New(rand.NewPCG(seed, 1))) {
		if got, want := lowest+place(d), numberOf(d); got != want && d < 1<<52 { // above, seconds are not exact
			t.Fatalf("seed %d: %d ns is in bucket %d, want %d", seed, d, got, want)
		}
	}
}

func TestASpreadIsWhatWasObserved(t *testing.T) {
	seed := rand.Uint64()
	all := durations(rand.New(rand.NewPCG(seed, 1)))
	var sum time.Duration
	var parts [3]Histogram
	for i, d := range all {
		all[i] = min(d, 1<<48)
		sum += all[i]
		parts[i%3].Observe(all[i])
	}
	parts[0].Observe(0)
	parts[1].Observe(-1)
	var s Spread
	for i := range parts {
		s.Add(&parts[i])
	}
	s.Add(nil)
	if s.Count != uint64(len(all)+2) || s.Zero != 2 || s.Seconds() != sum.Seconds() {
		t.Errorf("seed %d: %d in %v, %d of 0; want %d in %v, 2 of 0", seed, s.Count, s.Seconds(), s.Zero, len(all)+2, sum)
	}
	for k, got := range s.AtMost() {
		want := uint64(2)
		for _, d := range all {
			if d <= Bounds[k] {
				want++
			}
		}
		if got != want {
			t.Errorf("seed %d: %d of at most %v, want %d", seed, got, Bounds[k], want)
		}
	}
	slices.Sort(all)
	for _, q := range []float64{0.5, 0.9, 0.99, 1} {
		exact := all[max(0, int(math.Ceil(q*float64(s.Count)))-3)] // two of the durations are 0
		if got := s.Quantile(q); got < exact || float64(got) > 1.1*float64(exact)+20 {
			t.Errorf("seed %d: quantile %v is %v, want %v or a bucket's width more", seed, q, got, exact)
		}
	}
	if new(Spread).Quantile(0.99) != 0 {
		t.Error("an empty spread has a quantile")
	}
	counted := s.Zero
	for i, n := range s.Buckets {
		want := uint64(0)
		for _, d := range all {
			if lowest+place(d) == i {
				want++
			}
		}
		if counted += n; n != want {
			t.Errorf("seed %d: %d in bucket %d, want %d", seed, n, i, want)
		}
	}
	if counted != s.Count {
		t.Errorf("seed %d: buckets hold %d of %d", seed, counted, s.Count)
	}
}

// Concurrent reads see counts that never decrease, and no count up to a bound exceeds the total.
func TestReadingWhileOthersCount(t *testing.T) {
	cells := NewEach[Histogram]()
	read := func() (s Spread) {
		for h := range cells.All() {
			s.Add(h)
		}
		return s
	}
	const writers, each = 8, 20_000
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				cells.Mine().Observe(Bounds[(w+i)%len(Bounds)] - time.Duration(i%2))
			}
		})
	}
	var before Spread
	for range 200 {
		s := read()
		last := uint64(0)
		was := before.AtMost()
		for k, n := range s.AtMost() {
			if n < last || n > s.Count || n < was[k] {
				t.Fatalf("%d of at most %v, %d of at most the bound before, %d in all, %d before", n, Bounds[k], last, s.Count, was[k])
			}
			last = n
		}
		before = s
	}
	wg.Wait()
	if got := read().Count; got != writers*each {
		t.Errorf("%d of %d are counted", got, writers*each)
	}
}

func BenchmarkObserve(b *testing.B) {
	cells := NewEach[Histogram]()
	b.Run("one", func(b *testing.B) {
		h := cells.Mine()
		for b.Loop() {
			h.Observe(30 * time.Millisecond)
		}
	})
	b.Run("each", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				cells.Mine().Observe(30 * time.Millisecond)
			}
		})
	})
}
