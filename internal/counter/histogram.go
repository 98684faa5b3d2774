package counter

import (
	"math"
	"math/bits"
	"sync/atomic"
	"time"
)

// Schema says how wide a bucket of a Histogram is, as Prometheus's native histograms count it: the bounds of
// bucket i are 2^((i-1)/8) seconds, exclusive, and 2^(i/8), inclusive.
const Schema = 3

const (
	lowest  = -239 // the bucket of 1 ns
	highest = 265  // that of the longest duration
	group   = 8    // buckets that are made together: a factor of two, and a cache line
	groups  = (highest - lowest + group) / group
)

// Bounds are durations up to which a Histogram counts besides, exactly: 1 ms to a minute.
var Bounds = [...]time.Duration{
	time.Millisecond, 2500 * time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, 25 * time.Millisecond, 50 * time.Millisecond,
	100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
	10 * time.Second, 30 * time.Second, time.Minute,
}

// A Histogram counts durations, in buckets that are 9% wide. It is one cell: for what many cores
// do at once have Each. The zero Histogram is empty; it is safe for concurrent use.
type Histogram struct {
	sum    atomic.Int64               // nanoseconds
	zero   atomic.Uint64              // durations of 0, and less
	within [len(Bounds)]atomic.Uint64 // of the durations in the bound's bucket those that are no longer
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
	if bound := cuts[i]; bound > 0 && d <= Bounds[bound-1] { // after its bucket, which must never hold less
		h.within[bound-1].Add(1)
	}
	h.sum.Add(int64(d))
}

// Count is how many durations were counted.
func (h *Histogram) Count() uint64 {
	var s Spread
	s.Add(h)
	return s.Count
}

// A Spread is what Histograms have counted, all taken together. The zero Spread is empty.
type Spread struct {
	Count  uint64
	sum    int64
	Zero   uint64 // durations of 0
	within [len(Bounds)]uint64
	groups [groups]*[group]uint64
}

// Add adds what h has counted. A nil h has counted nothing.
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

// Join adds what another Spread has.
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

// Seconds is how long all durations are together.
func (s *Spread) Seconds() float64 { return time.Duration(s.sum).Seconds() }

// Quantile is a duration that a part q of all, from 0 to 1, are no longer than: 9% too long at most; 0 of an empty Spread.
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

// Buckets are how many durations there are in each bucket that has any, by its number; see Schema.
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

// AtMost is how many durations are no longer than each of Bounds.
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

// uppers are the longest durations of buckets, from the lowest on; cuts the bound in each, from 1 on, 0 if there is
// none; firsts the bucket of the shortest duration of so many bits that begin with the same three after the first.
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

// upper is the longest duration of bucket i.
func upper(i int) time.Duration {
	if i == highest {
		return math.MaxInt64
	}
	return time.Duration(math.Floor(math.Exp2(float64(i)/8) * 1e9))
}

// place is where the bucket of a duration above 0 stands, from the lowest on.
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
