package limit

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// blocks serves a limiter from which several cores take units at the same time. Each core takes a block of positions
// with one write to the shared word, and grants them from its own word. A position in a block has the same meaning as
// in the line: it goes to one call only, when it is there and the burst has not passed it. So blocks never exceed the
// limit and need no other expiry. Before a call is refused or a wait is computed, pour moves the remaining positions
// of all blocks to the returned units.
type blocks struct {
	until atomic.Int64 // blocks are taken until this instant
	last  atomic.Int64 // the highest position that was ever in a block
	_     counter.Pad
	cores []block // indexed by counter.Pick
}

// A block contains the positions that a core holds: those above low, up to high. low equals filling while another
// block is taken, and only grows otherwise. A goroutine that swaps low from the value it read knows that high has not
// changed.
type block struct {
	low  atomic.Int64
	high atomic.Int64
	_    counter.Pad
}

const (
	blockUnits = 64 // units per block
	filling    = math.MaxInt64

	// together is for how long blocks are taken after two cores collided.
	together = time.Millisecond

	// spent is the time in which a core uses up a block. Positions that the burst passes within that time are not
	// taken into a block.
	spent = 20 * time.Microsecond
)

// blocksFrom is the number of units that must be available before blocks are taken: two blocks per core and one more.
// Below that, units are taken one by one, so that none remain where other cores do not look immediately.
var blocksFrom = int64(2*counter.Cells+1) * blockUnits

// A core is the number of the core that a call runs on, counted from 1. It is 0 until number is called.
type core int

// number returns counter.Pick, which is called once.
func (c *core) number() int {
	if *c == 0 {
		*c = core(counter.Pick() + 1)
	}
	return int(*c - 1)
}

// newBlocks returns empty blocks. The positions of a line begin below 0.
func newBlocks() *blocks {
	b := &blocks{cores: make([]block, counter.Cells)}
	for i := range b.cores {
		b.cores[i].low.Store(lowest)
		b.cores[i].high.Store(lowest)
	}
	b.last.Store(lowest)
	return b
}

// contended records that two cores collided at booked.
func (p *places) contended(line *bucket.Line, now time.Duration, n int64) {
	if n != 1 || line.Full() < blocksFrom {
		return
	}
	b := p.blocks()
	if b == nil {
		p.grow().blocks.CompareAndSwap(nil, newBlocks())
		b = p.blocks()
	}
	if !b.on(now + together/2) { // limits the number of writes
		b.until.Store(int64(now + together))
	}
}

// on reports whether cores take blocks.
func (b *blocks) on(now time.Duration) bool { return int64(now) < b.until.Load() }

// take takes one unit from this core's block. If that is used up and plenty of units are available, it takes another
// block.
func (b *blocks) take(p *places, line *bucket.Line, at int64, core *core) (Turn, bool) {
	own := &b.cores[core.number()]
	if t, ok := own.take(line, at); ok {
		return t, true
	}
	return b.fill(own, p, line, at)
}

// take takes one unit of the block, unless the block is used up or the burst has passed it.
func (o *block) take(line *bucket.Line, at int64) (Turn, bool) {
	unit, low := line.Unit(), o.low.Load()
	left := o.left(low, line, at)
	if left.Cost < unit || !o.low.CompareAndSwap(low, left.Low+unit) {
		return Turn{}, false
	}
	return Turn{bucket.Turn{Place: left.Low + unit, Low: left.Low, Cost: unit}}, true
}

// left returns the part of the block that is there and that the burst has not passed. The block begins at low. Some
// of it may not be there if the caller read the clock a while ago.
func (o *block) left(low int64, line *bucket.Line, at int64) bucket.Turn {
	high := min(o.high.Load(), at)
	if low >= high { // also if low is filling
		return bucket.Turn{}
	}
	low = max(low, line.Low(at))
	return bucket.Turn{Place: high, Low: low, Cost: max(0, high-low)}
}

// fill takes another block from the line for a core that has used up its own, and takes its first unit. It takes no
// positions that the core held before and that were returned since.
func (b *blocks) fill(own *block, p *places, line *bucket.Line, at int64) (Turn, bool) {
	unit, low := line.Unit(), own.low.Load()
	if low == filling || line.Full() < blocksFrom || p.returned() != nil {
		return Turn{}, false
	}
	if own.high.Load()-max(low, line.Low(at)) >= unit || !own.low.CompareAndSwap(low, filling) {
		return Turn{}, false
	}
	booked := p.booked.Load()
	t := line.NextFor(spent, booked, at, blockUnits*unit)
	if t.Low < own.high.Load() || at-t.Low < blocksFrom*unit {
		own.low.Store(low)
		return Turn{}, false
	}
	b.reaches(t.Place) // before the positions are in the block, so that a refusal looks into it
	if !p.booked.CompareAndSwap(booked, t.Place) {
		own.low.Store(low)
		return Turn{}, false
	}
	own.high.Store(t.Place)
	own.low.Store(t.Low + unit)
	return Turn{bucket.Turn{Place: t.Low + unit, Low: t.Low, Cost: unit}}, true
}

// reaches records that a block holds positions up to place.
func (b *blocks) reaches(place int64) {
	for {
		last := b.last.Load()
		if place <= last || b.last.CompareAndSwap(last, place) {
			return
		}
	}
}

// pour moves the remaining positions of all blocks to the returned units, where every call finds them.
func (p *places) pour(line *bucket.Line, at int64) {
	b := p.blocks()
	if b == nil || b.last.Load() <= line.Low(at) {
		return
	}
	for i := range b.cores {
		for b.cores[i].pour(p, line, at) {
			runtime.Gosched()
		}
	}
}

// pour moves the remaining positions of the block to the returned units. No call takes any of them meanwhile. It
// reports whether the caller must try again because another goroutine was changing the block, whose content is then
// unknown. That goroutine finishes after a few instructions and does not wait for anything.
func (o *block) pour(p *places, line *bucket.Line, at int64) (again bool) {
	low := o.low.Load()
	if low == filling {
		return true
	}
	t := o.left(low, line, at)
	if t.Cost == 0 {
		return false
	}
	if !o.low.CompareAndSwap(low, filling) {
		return true
	}
	p.grow().returned.put(t)
	o.low.Store(t.Place)
	return false
}

// left returns how many positions blocks hold.
func (b *blocks) left(line *bucket.Line, at int64) (places int64) {
	if b.last.Load() <= line.Low(at) {
		return 0
	}
	for i := range b.cores {
		o := &b.cores[i]
		places += o.left(o.low.Load(), line, at).Cost
	}
	return places
}
