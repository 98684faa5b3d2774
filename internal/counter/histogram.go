package counter

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Schema is the resolution of a Histogram as in native histograms of Prometheus: bucket i contains durations above 2^((i-1)/8)
// and up to 2^(i/8) seconds.
const Schema = 3

const (
	lowest  = -239 // bucket of 1 ns
	highest = 265  // bucket of the longest duration
	group   = 8    // number of buckets that are created together: a factor of two, and a cache line
	groups  = (highest - lowest + group) / group
)

// Bounds are additional exact bounds for which a Histogram counts: 1 ms to a minute.
var Bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// A Histogram counts durations in buckets that are 9% wide. It is one cell; use Each for events on many cores. The zero
// Histogram is empty. It is safe for concurrent use.
type Histogram struct {
	sum    atomic.Int64               // nanoseconds
	zero   atomic.Uint64              // durations of 0 or less
	within [len(Bounds)]atomic.Uint64 // durations in the bucket of a bound that are not longer than the bound
	groups [groups]atomic.Pointer[[group]atomic.Uint64]
	_      Pad
}

// Observe counts a duration.
func (h *Histogram) Observe(d time.Duration) {
	if d <= 0 {
		h.zero.Add(1)
		return
	}
	i := place(d)
	Made(&h.groups[i/group])[i%group].Add(1)
	if bound := cuts[i]; bound > 0 && d <= Bounds[bound-1] { // after the bucket, which must not have a smaller count
		h.within[bound-1].Add(1)
	}
	h.sum.Add(int64(d))
}

// Count returns the number of counted durations.
func (h *Histogram) Count() uint64 {
	var s Spread
	s.Add(h)
	return s.Count
}

// A Spread is the sum of Histograms. The zero Spread is empty.
type Spread struct {
	Count  uint64
	sum    int64
	Zero   uint64 // durations of 0
	within [len(Bounds)]uint64
	groups [groups]*[group]uint64
}

// Add adds the counts of h. A nil h is empty.
func (s *Spread) Add(h *Histogram) {
	if h == nil {
		return
	}
	zero := h.zero.Load()
	s.Count, s.Zero, s.sum = s.Count+zero, s.Zero+zero, s.sum+h.sum.Load()
	for i := range s.within { // before their buckets
		s.within[i] += h.within[i].Load()
	}
	for g := range h.groups {
		from := h.groups[g].Load()
		if from == nil {
			continue
		}
		if s.groups[g] == nil {
			s.groups[g] = new([group]uint64)
		}
		for i := range from {
			n := from[i].Load()
			s.groups[g][i] += n
			s.Count += n
		}
	}
}

// Join adds another Spread.
func (s *Spread) Join(t *Spread) {
	s.Count, s.Zero, s.sum = s.Count+t.Count, s.Zero+t.Zero, s.sum+t.sum
	for i, n := range t.within {
		s.within[i] += n
	}
	for g, from := range t.groups {
		if from == nil {
			continue
		}
		if s.groups[g] == nil {
			s.groups[g] = new([group]uint64)
		}
		for i, n := range from {
			s.groups[g][i] += n
		}
	}
}

// Seconds returns the sum of all durations.
func (s *Spread) Seconds() float64 { return time.Duration(s.sum).Seconds() }

// Quantile returns an upper bound of the q-quantile, with q from 0 to 1. It is at most 9% too high. For an empty Spread it
// returns 0.
func (s *Spread) Quantile(q float64) time.Duration {
	want := uint64(math.Ceil(q * float64(s.Count)))
	n, d := s.Zero, time.Duration(0)
	for i, in := range s.Buckets {
		if n >= want {
			break
		}
		n, d = n+in, upper(i)
	}
	return d
}

// Buckets yields the number of each non-empty bucket and its count; see Schema.
func (s *Spread) Buckets(yield func(i int, n uint64) bool) {
	for g, all := range s.groups {
		if all == nil {
			continue
		}
		for i, n := range all {
			if n > 0 && !yield(lowest+g*group+i, n) {
				return
			}
		}
	}
}

// AtMost returns, for each of Bounds, the number of durations that are not longer.
func (s *Spread) AtMost() (n [len(Bounds)]uint64) {
	for k := range Bounds {
		n[k] = s.Zero + s.within[k]
	}
	for i, in := range s.Buckets {
		for k := range Bounds {
			if i < lowest+boundAt[k] {
				n[k] += in
			}
		}
	}
	return n
}

// uppers are the longest durations of buckets, from the lowest. cuts has for each bucket the number of the bound in it, from 1,
// or 0. firsts has the bucket of the shortest duration with a bit length and the three bits after the first.
var (
	uppers  [highest - lowest + 1]time.Duration
	cuts    [len(uppers)]uint8
	boundAt [len(Bounds)]int
	firsts  [64 * 8]int16
)

func init() {
	for i := range uppers {
		uppers[i] = upper(lowest + i)
	}
	at := 0
	for k := range firsts {
		shortest := time.Duration(1) << (k / 8) / 2
		if n := k/8 - 4; n >= 0 {
			shortest |= time.Duration(k%8) << n
		}
		for at < len(uppers)-1 && uppers[at] < shortest {
			at++
		}
		firsts[k] = int16(at)
	}
	for k, bound := range Bounds {
		boundAt[k] = place(bound)
		cuts[boundAt[k]] = uint8(k + 1)
	}
}

// upper returns the longest duration of bucket i.
func upper(i int) time.Duration {
	if i == highest {
		return math.MaxInt64
	}
	return time.Duration(math.Floor(math.Exp2(float64(i)/8) * 1e9))
}

// place returns the index of the bucket of a duration above 0, from the lowest.
func place(d time.Duration) int {
	n := bits.Len64(uint64(d))
	k := n * 8
	if n >= 4 {
		k += int(d>>(n-4)) & 7
	}
	i := int(firsts[k])
	for d > uppers[i] {
		i++
	}
	return i
}
