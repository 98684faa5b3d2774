package counter

import (
	"sync/atomic"
	"time"
)

// minShift makes a bucket at least 2^20 ns long, about a millisecond.
const minShift = 20

// A Window counts events in time buckets, in a ring that is slightly longer than its width. Times are durations since a fixed
// moment, as in clock.Clock. Earlier times count as that moment. It is safe for concurrent use. Most callers use NewWindow.
// SingleWindow is for counts that change rarely or under a lock.
//
// Every bucket is one word with its epoch, which is the number of the bucket since the beginning, and its count. A word is only
// replaced as a whole. So an event is never counted in a wrong bucket, however long its goroutine was delayed. No event is lost
// while its bucket can be read: Add drops an event only if a later one, by at least the width, uses its place in the ring.
type Window struct {
	shift uint   // a bucket is 1<<shift ns long
	ring  uint64 // buckets per ring, a power of two
	cells int    // number of rings
	words []atomic.Uint64
}

// NewWindow returns a Window of a positive width with one ring per core. The width has at least this many buckets, but no
// bucket is shorter than a millisecond. It uses at most 32 bytes per bucket and core.
func NewWindow(width time.Duration, buckets int) *Window {
	return build(width, buckets, Cells)
}

// SingleWindow is like NewWindow with one ring for all cores.
func SingleWindow(width time.Duration, buckets int) *Window {
	return build(width, buckets, 1)
}

func build(width time.Duration, buckets, cells int) *Window {
	c := &Window{shift: minShift, ring: 1, cells: cells}
	for width>>(c.shift+1) >= time.Duration(max(buckets, 1)) {
		c.shift++
	}
	// Three more buckets than the width: the width cuts a bucket at either end, and a reader may be one bucket behind the
	// writers.
	for c.ring < uint64(width>>c.shift)+3 {
		c.ring *= 2
	}
	c.words = make([]atomic.Uint64, c.ring*uint64(cells))
	return c
}

// Bucket returns the length of a bucket, which is the maximum error of Within and Covering.
func (c *Window) Bucket() time.Duration { return 1 << c.shift }

// Add counts n events at a time. A count saturates at twice the nanoseconds of Bucket, which single events cannot reach in real
// time. A negative n subtracts events of the same time, exactly only in a SingleWindow.
func (c *Window) Add(at time.Duration, n int64) {
	cell := 0
	if c.cells > 1 {
		cell = Pick()
	}
	c.AddIn(cell, at, n)
}

// AddIn is Add for a caller that has already called Pick.
func (c *Window) AddIn(cell int, at time.Duration, n int64) {
	epoch := c.epoch(at)
	word := &c.words[uint64(cell)*c.ring+epoch&(c.ring-1)]
	for {
		old := word.Load()
		held := old >> (c.shift + 1)
		if held > epoch {
			return // the ring has overwritten the bucket of at
		}
		count := int64(0)
		if held == epoch {
			count = int64(old & c.most())
		}
		if word.CompareAndSwap(old, epoch<<(c.shift+1)|c.clamp(count, n)) {
			return
		}
	}
}

// Within counts the events in buckets that are completely in the last w before now, including the current bucket. It never
// counts an older event, but may miss events of up to one Bucket at the beginning. w is at most the width.
func (c *Window) Within(now, w time.Duration) int64 {
	return c.sum((max(now, 0)-w)>>c.shift+1, now)
}

// Covering counts all events of the last w before now, and possibly older ones by up to one Bucket. w is at most the width.
func (c *Window) Covering(now, w time.Duration) int64 {
	return c.sum((max(now, 0)-w)>>c.shift, now)
}

// Reset removes all events. Concurrent events may stay.
func (c *Window) Reset() {
	for i := range c.words {
		c.words[i].Store(0)
	}
}

// sum adds the buckets from the epoch first to the epoch of now.
func (c *Window) sum(first, now time.Duration) int64 {
	from, to := uint64(max(first, 0)), c.epoch(now)
	total := int64(0)
	for i := range c.words {
		w := c.words[i].Load()
		if e := w >> (c.shift + 1); from <= e && e <= to {
			total += int64(w & c.most())
		}
	}
	return total
}

func (c *Window) epoch(at time.Duration) uint64 { return uint64(max(at, 0)) >> c.shift }

// most is the largest count. An epoch has 63-shift bits, so that it never repeats. The count has the other bits.
func (c *Window) most() uint64 { return 2<<c.shift - 1 }

func (c *Window) clamp(count, n int64) uint64 {
	if n > int64(c.most())-count {
		return c.most()
	}
	return uint64(max(count+n, 0))
}
