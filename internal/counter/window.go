package counter

import (
	"sync/atomic"
	"time"
)

// minShift makes a bucket at least 2^20 ns, about a millisecond, long.
const minShift = 20

// A Window counts events in buckets of time, in a ring that reaches a little
// further back than its width. Instants are durations since a fixed moment, as
// clock.Clock tells them; those before that moment count as the moment itself.
// It is safe for concurrent use. Most callers want NewWindow; SingleWindow is for counts
// that change seldom or behind a lock.
//
// Every bucket is one word that holds both its epoch (which bucket of all time
// it is) and its count, and is only ever replaced as a whole. So an event is
// never credited to another bucket than its own, however long its goroutine
// was held up, and none is lost while its bucket can still be asked for: an
// Add is dropped only if an event at least a whole width later has taken over
// its place in the ring.
type Window struct {
	shift uint   // a bucket is 1<<shift ns long
	ring  uint64 // buckets in a ring, a power of two
	cells int    // rings
	words []atomic.Uint64
}

// NewWindow returns a Window of the last width, which must be positive, with one
// ring per core. The width is divided into at least so many buckets, but none
// shorter than a millisecond. It takes at most 32 bytes per bucket and core.
func NewWindow(width time.Duration, buckets int) *Window {
	return build(width, buckets, Cells)
}

// SingleWindow is NewWindow with one ring for all cores.
func SingleWindow(width time.Duration, buckets int) *Window {
	return build(width, buckets, 1)
}

func build(width time.Duration, buckets, cells int) *Window {
	c := &Window{shift: minShift, ring: 1, cells: cells}
	for width>>(c.shift+1) >= time.Duration(max(buckets, 1)) {
		c.shift++
	}
	// Three more than fit the width: it cuts a bucket at either end, and a
	// reader may be a bucket behind the writers.
	for c.ring < uint64(width>>c.shift)+3 {
		c.ring *= 2
	}
	c.words = make([]atomic.Uint64, c.ring*uint64(cells))
	return c
}

// Bucket is how long a bucket is: how far Within and Covering may be off.
func (c *Window) Bucket() time.Duration { return 1 << c.shift }

// Add counts n events at the instant at. A count stops at the largest that fits
// its bucket (twice the nanoseconds of Bucket), which single events cannot
// reach in real time. A negative n takes back what was counted at the same
// instant; that is exact only in a SingleWindow.
func (c *Window) Add(at time.Duration, n int64) {
	cell := 0
	if c.cells > 1 {
		cell = Pick()
	}
	c.AddIn(cell, at, n)
}

// AddIn is Add for who has picked a cell already.
func (c *Window) AddIn(cell int, at time.Duration, n int64) {
	epoch := c.epoch(at)
	word := &c.words[uint64(cell)*c.ring+epoch&(c.ring-1)]
	for {
		old := word.Load()
		held := old >> (c.shift + 1)
		if held > epoch {
			return // the ring has come round since at
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

// Within counts the events of the buckets that lie wholly in the last w before
// now, the present bucket included: never an older event, though it may miss
// those of up to one Bucket at the far end. w is at most the width.
func (c *Window) Within(now, w time.Duration) int64 {
	return c.sum((max(now, 0)-w)>>c.shift+1, now)
}

// Covering counts every event of the last w before now, and perhaps some that
// are older by up to one Bucket. w is at most the width.
func (c *Window) Covering(now, w time.Duration) int64 {
	return c.sum((max(now, 0)-w)>>c.shift, now)
}

// Reset forgets everything. What is added at the same time may or may not stay.
func (c *Window) Reset() {
	for i := range c.words {
		c.words[i].Store(0)
	}
}

// sum adds up the buckets from the epoch first to that of now.
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

// most is the largest count. An epoch takes 63-shift bits, so that none ever
// comes round again; the rest is the count's.
func (c *Window) most() uint64 { return 2<<c.shift - 1 }

func (c *Window) clamp(count, n int64) uint64 {
	if n > int64(c.most())-count {
		return c.most()
	}
	return uint64(max(count+n, 0))
}
