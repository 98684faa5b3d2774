package fleet

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// granted is a block of units. The lowest positions are spent first, so that the remaining units return at
// their full value.
type granted struct {
	left  atomic.Int64
	until expiry
	mark  Mark // of the last unit
}

// fromBlocks takes n units from one block and returns that block. The units of a turn are adjacent, so that
// they can return together. It does not combine two blocks with too few units each. The next request returns
// those; see splinters.
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

// turn returns the position of n units of a block, if left units remain after them.
func (b *granted) turn(left, n int64) bucket.Turn {
	return bucket.Turn{Place: b.mark.Level - left*b.mark.Step, Low: b.mark.At, Cost: n}
}

// mark returns the mark of the last unit of a turn.
func (p *lease) mark(t limit.Turn) Mark {
	return Mark{At: t.Low, Level: t.Place, Step: p.step.Load()}
}

// put keeps n units that the store has granted. m is the mark of the last. They replace the block with the
// fewest remaining units, which go back to the store.
func (p *lease) put(now time.Duration, n int64, until expiry, m Mark) {
	b := &granted{until: until, mark: m}
	b.left.Store(n)
	// An empty slot or an expired block counts as a block without units.
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

// empty returns the remaining units of a block that is no longer used.
func (p *lease) empty(now time.Duration, b *granted) int64 {
	n := b.left.Swap(0)
	if n > 0 {
		p.gaveBack(now, b.mark, n)
		p.settle(now, Settlement{Back: n, Mark: b.mark})
	}
	return n
}

// expire empties expired blocks, or all blocks if all is set. It returns how many units are still held.
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

// held returns how many units can be spent locally.
func (p *lease) held(now time.Duration) (n int64) {
	for i := range p.blocks {
		if b := p.blocks[i].Load(); b != nil && !b.until.passed(now, p.group.fleet.clock) {
			n += b.left.Load()
		}
	}
	return n
}
