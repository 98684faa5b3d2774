package fleet

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// granted is a block of units. The lowest places are given out first: what is left
// then comes back whole.
type granted struct {
	left  atomic.Int64
	until expiry
	mark  Mark // of the last
}

// fromBlocks takes n units from one block, and returns which that is: the units of a turn stand side by side, so that they
// can come back together. Two blocks with too little each are not added up; the next ask gives them back, see splinters.
func (p *lease) fromBlocks(now time.Duration, n int64) (limit.Turn, *granted, bool) {
	for i := range p.blocks {
		b := p.blocks[i].Load()
		if b == nil || b.until.passed(now, p.group.fleet.clock) {
			continue
		}
		for left := b.left.Load(); left >= n && n > 0; left = b.left.Load() {
			if b.left.CompareAndSwap(left, left-n) {
				return limit.Turn{Turn: b.turn(left-n, n)}, b, true
			}
		}
	}
	return limit.Turn{Turn: bucket.Turn{Cost: n}}, nil, n == 0
}

// turn is the place of n units of a block of which left are left.
func (b *granted) turn(left, n int64) bucket.Turn {
	return bucket.Turn{Place: b.mark.Level - left*b.mark.Step, Low: b.mark.At, Cost: n}
}

// mark is where the last unit of a turn stands.
func (p *lease) mark(t limit.Turn) Mark {
	return Mark{At: t.Low, Level: t.Place, Step: p.step.Load()}
}

// put keeps n units that the store has granted, of which m is the mark of the last. They take the place of the block that
// has least left, whose rest goes back to the store.
func (p *lease) put(now time.Duration, n int64, until expiry, m Mark) {
	b := &granted{until: until, mark: m}
	b.left.Store(n)
	// An empty slot, or one that has had its time, counts as a block with nothing left.
	worst, least := 0, int64(math.MaxInt64)
	for i := range p.blocks {
		var left int64
		if old := p.blocks[i].Load(); old != nil && !old.until.passed(now, p.group.fleet.clock) {
			left = old.left.Load()
		}
		if left < least {
			worst, least = i, left
		}
	}
	if old := p.blocks[worst].Swap(b); old != nil {
		p.empty(now, old)
	}
	p.group.isActive(p)
}

// empty gives back what is left in a block that is not used any more.
func (p *lease) empty(now time.Duration, b *granted) int64 {
	n := b.left.Swap(0)
	if n > 0 {
		p.gaveBack(now, b.mark, n)
		p.settle(now, Settlement{Back: n, Mark: b.mark})
	}
	return n
}

// expire empties blocks that must not be used any more, and all if all is set. It
// reports how many units are still held.
func (p *lease) expire(now time.Duration, all bool) (held int64) {
	for i := range p.blocks {
		b := p.blocks[i].Load()
		if b == nil {
			continue
		}
		if all || b.until.passed(now, p.group.fleet.clock) {
			if p.blocks[i].CompareAndSwap(b, nil) {
				p.empty(now, b)
			}
			continue
		}
		held += b.left.Load()
	}
	return held
}

// held is how many units may be spent locally.
func (p *lease) held(now time.Duration) (n int64) {
	for i := range p.blocks {
		if b := p.blocks[i].Load(); b != nil && !b.until.passed(now, p.group.fleet.clock) {
			n += b.left.Load()
		}
	}
	return n
}
