package limit

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/internal/shard"
)

// A crowd is what a limiter grows when several cores take from it at once. Each
// core then takes a block of places with one write to the shared word and gives
// them out from a cell of its own. A place in a cell is worth what it was worth
// in the line: it can be used until the burst has passed it. So blocks never let
// more go than the limit, and need no expiry but that.
type crowd struct {
	until atomic.Int64 // the crowd is on until this instant
	last  atomic.Int64 // the highest place that was ever in a cell
	cells []cell
}

type cell struct {
	low  atomic.Int64 // the cell holds (low, high]; full of refilling while it is being filled
	high atomic.Int64
	_    shard.Line
}

const (
	block     = 16 // units that a core takes at once
	crowdTime = time.Millisecond
	filling   = math.MaxInt64
)

// crowded notes that two cores met at the shared word.
func (m *Limiter) crowded(now time.Duration, n int64) {
	if n != 1 || shard.Cells < 2 {
		return
	}
	c := m.crowd.Load()
	if c == nil {
		c = &crowd{cells: make([]cell, shard.Cells)}
		if !m.crowd.CompareAndSwap(nil, c) {
			c = m.crowd.Load()
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
	own := &c.cells[shard.Pick()]
	if t, ok := own.take(line, at, unit); ok {
		return t, true
	}
	return c.fill(own, m, line, at, unit)
}

func (c *cell) take(line *bucket.Line, at, unit int64) (Turn, bool) {
	low := c.low.Load()
	// low only grows, so if the swap succeeds high has not changed either.
	if c.high.Load()-low < unit || low < at-line.Depth() {
		return Turn{}, false
	}
	if !c.low.CompareAndSwap(low, low+unit) {
		return Turn{}, false
	}
	return Turn{bucket.Turn{Place: low + unit, Low: low, Cost: unit}}, true
}

// fill moves a block from the line into the cell and takes its first unit. It
// does so only while the line holds several blocks for every core: near the
// limit each unit is taken singly, so that none is left where nobody looks.
func (c *crowd) fill(own *cell, m *Limiter, line *bucket.Line, at, unit int64) (Turn, bool) {
	low := own.low.Load()
	if low == filling || m.spare.Load() != nil || !own.low.CompareAndSwap(low, filling) {
		return Turn{}, false
	}
	booked := m.booked.Load()
	t := line.Next(booked, at, block*unit)
	if at-t.Place < int64(2*len(c.cells))*block*unit || !m.booked.CompareAndSwap(booked, t.Place) {
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

// steal takes a unit from any cell: before a caller is refused, no cell may hold
// what he could have had.
func (m *Limiter) steal(line *bucket.Line, at, unit int64) (Turn, bool) {
	c := m.crowd.Load()
	if c == nil || unit != line.Unit() || c.last.Load() <= at-line.Depth() {
		return Turn{}, false
	}
	for i := range c.cells {
		if t, ok := c.cells[i].take(line, at, unit); ok {
			return t, true
		}
	}
	return Turn{}, false
}

// held is how many places the cells hold.
func (c *crowd) held(line *bucket.Line, at int64) (places int64) {
	for i := range c.cells {
		low, high := c.cells[i].low.Load(), c.cells[i].high.Load()
		if low != filling && low < high {
			places += max(0, high-max(low, at-line.Depth()))
		}
	}
	return places
}
