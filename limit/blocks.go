package limit

import (
	"math"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// blocks is what a limiter has while several cores take from it at once. Each core then takes a
// block of places with one write to the word that all share, and gives them out from a word of its
// own. A place in a block is worth what it was worth in the line: it is given to one call only, when
// it is there and the burst has not passed it. So blocks never let more go than the limit, and need
// no expiry but that. Before anybody is refused, and before anybody is told how long it takes, what
// is left of all blocks is put with the places that came back (pour).
type blocks struct {
	until atomic.Int64 // blocks are taken until this instant
	last  atomic.Int64 // the highest place that was ever in a block
	_     counter.Pad
	cores []block // by counter.Pick
}

// A block is the places that a core holds: those after low, up to high. low is filling while another
// block is taken, and only grows otherwise: whoever moves it from what it read knows that high is what
// it was.
type block struct {
	low  atomic.Int64
	high atomic.Int64
	_    counter.Pad
}

const (
	blockUnits = 64 // in a block
	filling    = math.MaxInt64

	// together is for how long blocks are taken after two cores met.
	together = time.Millisecond

	// spent is how soon a core has used a block: what the burst passes within that time is not
	// taken into one.
	spent = 20 * time.Microsecond
)

// blocksFrom is the units that must be there for blocks to be taken: two for every core and one more.
// Below that every unit is taken singly, so that none is left where others do not look at once.
var blocksFrom = int64(2*counter.Cells+1) * blockUnits

// A core is the number of the core that a call runs on, from 1 on: 0 if it was not asked for yet.
type core int

// number is counter.Pick, asked for once.
func (c *core) number() int {
	if *c == 0 {
		*c = core(counter.Pick() + 1)
	}
	return int(*c - 1)
}

// newBlocks is blocks that hold nothing: the places of an axis begin below 0.
func newBlocks() *blocks {
	b := &blocks{cores: make([]block, counter.Cells)}
	for i := range b.cores {
		b.cores[i].low.Store(lowest)
		b.cores[i].high.Store(lowest)
	}
	b.last.Store(lowest)
	return b
}

// contended notes that two cores met at booked.
func (p *places) contended(line *bucket.Line, now time.Duration, n int64) {
	if n != 1 || line.Full() < blocksFrom {
		return
	}
	b := p.blocks()
	if b == nil {
		p.grow().blocks.CompareAndSwap(nil, newBlocks())
		b = p.blocks()
	}
	if !b.on(now + together/2) { // so that few write it
		b.until.Store(int64(now + together))
	}
}

// on reports whether cores take blocks.
func (b *blocks) on(now time.Duration) bool { return int64(now) < b.until.Load() }

// take takes one unit from this core's block, or from another block if that is used up and there is
// plenty.
func (b *blocks) take(p *places, line *bucket.Line, at int64, core *core) (Turn, bool) {
	own := &b.cores[core.number()]
	if t, ok := own.take(line, at); ok {
		return t, true
	}
	return b.fill(own, p, line, at)
}

// take takes one unit of the block, if it holds one that the burst has not passed.
func (o *block) take(line *bucket.Line, at int64) (Turn, bool) {
	unit, low := line.Unit(), o.low.Load()
	left := o.left(low, line, at)
	if left.Cost < unit || !o.low.CompareAndSwap(low, left.Low+unit) {
		return Turn{}, false
	}
	return Turn{bucket.Turn{Place: left.Low + unit, Low: left.Low, Cost: unit}}, true
}

// left is what the block, which begins at low, holds that is there and that the burst has not passed.
// Some may not be there if the reading of the clock is an old one.
func (o *block) left(low int64, line *bucket.Line, at int64) bucket.Turn {
	high := min(o.high.Load(), at)
	if low >= high { // filling is one of these
		return bucket.Turn{}
	}
	low = max(low, line.Low(at))
	return bucket.Turn{Place: high, Low: low, Cost: max(0, high-low)}
}

// fill takes another block from the line for a core that has used up its own, and takes the first
// unit of it. Places that the core has held before, which came back since, are not taken into one.
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
	b.reaches(t.Place) // before the places are in the block, so that a refusal looks into it
	if !p.booked.CompareAndSwap(booked, t.Place) {
		own.low.Store(low)
		return Turn{}, false
	}
	own.high.Store(t.Place)
	own.low.Store(t.Low + unit)
	return Turn{bucket.Turn{Place: t.Low + unit, Low: t.Low, Cost: unit}}, true
}

// reaches notes that a block holds places up to this one.
func (b *blocks) reaches(place int64) {
	for {
		last := b.last.Load()
		if place <= last || b.last.CompareAndSwap(last, place) {
			return
		}
	}
}

// pour puts what blocks hold with what came back, where whoever lacks something finds it.
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

// pour puts what the block holds where the places that came back are. Nobody takes of it meanwhile. It reports
// whether it has to be tried again, as somebody else was at the block: what that one holds is not to be seen yet. Whoever
// is at a block is done after a few instructions, none of which waits for anything.
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

// left is how many places blocks hold.
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
