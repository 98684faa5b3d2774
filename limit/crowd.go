package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A crowd is what a limiter grows when several cores take from it at once. Each
// core then takes a block of places with one write to the shared word and gives
// them out from a cell of its own. A place in a cell is worth what it was worth
// in the line: it can be used until the burst has passed it. So blocks never let
// more go than the limit, and need no expiry but that.
type crowd struct {
	until atomic.Int64 // the crowd is on until this instant
	cells []cell
	_     counter.Pad
	last  atomic.Int64 // the highest place that was ever in a cell
	_     counter.Pad
}

type cell struct {
	low  atomic.Int64 // the cell holds (low, high]; filling while it is being filled
	high atomic.Int64
	_    counter.Pad
}

const (
	block     = 64 // units that a core takes at once
	crowdTime = time.Millisecond
	filling   = math.MaxInt64
)

// plenty is the units that the line must hold for blocks to be taken: several of
// them for every core. Near the limit each unit is taken singly, so that none is
// left where nobody looks.
var plenty = int64(2*counter.Cells+1) * block

// crowded notes that two cores met at the shared word.
func (m *Limiter) crowded(line *bucket.Line, now time.Duration, n int64) {
	if n != 1 || counter.Cells < 2 || line.Full() < plenty {
		return
	}
	c := m.crowd()
	if c == nil {
		c = &crowd{cells: make([]cell, counter.Cells)}
		if !m.grow().crowd.CompareAndSwap(nil, c) {
			c = m.crowd()
		}
	}
	if !c.busy(now + crowdTime/2) {
		c.until.Store(int64(now + crowdTime))
	}
}

func (c *crowd) busy(now time.Duration) bool { return int64(now) < c.until.Load() }

// take takes one unit from this core's cell, filling it first if it is empty and
// there is plenty.
func (c *crowd) take(m *Limiter, line *bucket.Line, at, unit int64) (Turn, bool) {
	own := &c.cells[counter.Pick()]
	if t, ok := own.take(line, at, unit); ok {
		return t, true
	}
	return c.fill(own, m, line, at, unit)
}

// take takes cost places, if the cell holds so many that the burst has not
// passed.
func (c *cell) take(line *bucket.Line, at, cost int64) (Turn, bool) {
	low := c.low.Load()
	t := c.rest(low, line, at)
	// low only grows, so if the swap succeeds high has not changed either.
	if t.Cost < cost || !c.low.CompareAndSwap(low, t.Low+cost) {
		return Turn{}, false
	}
	return Turn{bucket.Turn{Place: t.Low + cost, Low: t.Low, Cost: cost}}, true
}

// rest is what the cell holds that is there and that the burst has not passed;
// low is where it begins. Some may not be there if the line was set back, or read
// with an older clock.
func (c *cell) rest(low int64, line *bucket.Line, at int64) bucket.Turn {
	high := min(c.high.Load(), at)
	if low >= high { // filling is one of these
		return bucket.Turn{}
	}
	low = max(low, line.Low(at))
	return bucket.Turn{Place: high, Low: low, Cost: max(0, high-low)}
}

// fill moves a block from the line into an empty cell and takes its first unit.
func (c *crowd) fill(own *cell, m *Limiter, line *bucket.Line, at, unit int64) (Turn, bool) {
	low := own.low.Load()
	if low == filling || line.Full() < plenty || m.spare() != nil {
		return Turn{}, false
	}
	if own.high.Load()-max(low, line.Low(at)) >= unit || !own.low.CompareAndSwap(low, filling) {
		return Turn{}, false
	}
	booked := m.booked.Load()
	t := line.NextLasting(booked, at, block*unit, crowdTime)
	if at-t.Low < plenty*unit || !m.booked.CompareAndSwap(booked, t.Place) {
		own.low.Store(low)
		return Turn{}, false
	}
	c.reached(t.Place)
	own.high.Store(t.Place)
	own.low.Store(t.Low + unit)
	return Turn{bucket.Turn{Place: t.Low + unit, Low: t.Low, Cost: unit}}, true
}

func (c *crowd) reached(place int64) {
	for {
		last := c.last.Load()
		if place <= last || c.last.CompareAndSwap(last, place) {
			return
		}
	}
}

// fromCells takes cost places from the cells: before a caller is refused, no cell
// may hold what he could have had.
func (m *Limiter) fromCells(line *bucket.Line, at, cost int64) (Turn, bool) {
	c := m.crowd()
	if c == nil || c.last.Load() <= line.Low(at) || m.there(line, at) < cost {
		return Turn{}, false
	}
	for i := range c.cells {
		if t, ok := c.cells[i].take(line, at, cost); ok {
			return t, true
		}
	}
	m.pour(c, line, at)
	return m.gather(line, at, cost)
}

// pour puts what the cells hold where it can be taken together.
func (m *Limiter) pour(c *crowd, line *bucket.Line, at int64) {
	for i := range c.cells {
		own := &c.cells[i]
		low := own.low.Load()
		if t := own.rest(low, line, at); t.Cost > 0 && own.low.CompareAndSwap(low, t.Place) {
			m.putSpare(t)
		}
	}
}

// held is how many places the cells hold.
func (c *crowd) held(line *bucket.Line, at int64) (places int64) {
	for i := range c.cells {
		own := &c.cells[i]
		places += own.rest(own.low.Load(), line, at).Cost
	}
	return places
}
