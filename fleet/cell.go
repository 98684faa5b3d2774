package fleet

import (
	"math"
	"slices"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Cell is the state of one limit for one key, as a store keeps it. The zero Cell
// is full. Instants are microseconds of the store's clock, of shape Bucket those of the
// supply's clock but for Paused.
//
// A Bucket is a vessel that drains: units are weight poured in, and there is room for as many as fit. That is GCRA with
// whole numbers. A Rolling limit counts units by slot, and forgets a slot when the window has left all of it. A Calendar limit
// counts the units of the window that the store's clock is in. What comes back is taken out where its mark says that it
// went in, and never counts for more than it has cost: of a vessel that ran empty since it is nothing.
type Cell struct {
	Shape limit.Shape

	// Of shape Bucket. Fill is weighed by a meter with Unit and Drain. Marks from before Since are worth nothing.
	Fill  bucket.Fill
	Unit  int64
	Drain int64
	Since int64

	Start int64 // of shape Calendar: the window's begin, never an earlier one
	End   int64 // and end
	Last  int64 // when a unit was counted in it last
	Count int64 // units in the window, of shapes Rolling and Calendar

	Returned int64  // of shape Calendar: units that have come back in the window
	Slots    []Slot // of shape Rolling, and of shape Bucket as in history.go; the oldest first

	// Hold is the longest hold, in microseconds, of those who may still use what they were
	// granted; HeldAt, of shape Bucket, when somebody with that was granted something last. See hold.go.
	Hold, HeldAt int64

	Paused int64 // until when
	Full   int64 // when everything is there again, and nothing is lost by forgetting it
}

// A Slot is what went in one slot of a ring: Number counts slots of the length Grain, in microseconds, since the epoch.
type Slot struct{ Number, Count, Grain int64 }

// Most is how many units the limit holds when it is full.
func (r *Rule) Most() int64 {
	if r.Shape == limit.Bucket {
		return r.Meter.Most()
	}
	return r.Amount
}

// turnTo brings a cell to the instant, and to the rule if that has changed: what
// has gone stays gone.
func (c *Cell) turnTo(at *Supply, r *Rule, w *limit.Windows) {
	var gone int64
	if c.Shape != r.Shape {
		gone = c.gone(at)
		*c = Cell{Shape: r.Shape, Paused: c.Paused}
	}
	switch r.Shape {
	case limit.Bucket:
		c.drain(at.Z, &r.Meter)
		c.holdTokens(at, r)
	case limit.Rolling:
		c.holdSlots(r)
		c.leave(at.Now, r)
	case limit.Calendar:
		c.enter(at.Now, w)
	}
	c.add(at, r, gone)
}

// gone is how much there is in a cell that gets another shape.
func (c *Cell) gone(at *Supply) int64 {
	switch {
	case c.Shape == limit.Rolling, c.Shape == limit.Calendar && at.Now < c.End:
		return c.Count
	case c.Shape == limit.Bucket && c.Unit > 0:
		old := bucket.Meter{Unit: c.Unit, Drain: c.Drain}
		return (old.Drained(c.Fill, at.Z).Weight + c.Unit - 1) / c.Unit
	}
	return 0
}

// drain lets time pass at the rate that was in force. Of what was taken before a
// vessel ran empty nothing can come back, nor of what was weighed otherwise.
func (c *Cell) drain(now int64, m *bucket.Meter) {
	old := bucket.Meter{Unit: c.Unit, Drain: c.Drain}
	before := c.Fill.At
	c.Fill = old.Drained(c.Fill, now)
	if c.Fill.Weight == 0 && c.Fill.At > before {
		c.Slots, c.Since = nil, c.Fill.At
	}
	if c.Unit == m.Unit && c.Drain == m.Drain {
		return
	}
	c.Fill.Weight = m.Convert(c.Fill.Weight, c.Unit)
	if c.Unit > 0 {
		c.forgetHistory()
	}
	c.Unit, c.Drain = m.Unit, m.Drain
}

// leave forgets slots that the window has left.
func (c *Cell) leave(now int64, r *Rule) {
	for len(c.Slots) > 0 && now >= c.leaves(0, r) {
		c.Count -= c.Slots[0].Count
		c.Slots = c.Slots[1:]
	}
}

// leaves is when slot i counts no more. One of another grain may have been granted to a process that holds
// longer than the asker.
func (c *Cell) leaves(i int, r *Rule) int64 {
	s := &c.Slots[i]
	at := r.Ring.Leaves(s.Number, s.Grain)
	if s.Grain != r.Ring.Grain {
		at += max(0, c.Hold-r.Hold)
	}
	return at
}

// enter begins a new window if the present is in one. If units of the old window
// went since the new one began, as happens when a limit has got another zone or
// period, they all count in the new one; for that the cell is kept a period longer. A
// clock that runs backwards begins none.
func (c *Cell) enter(now int64, w *limit.Windows) {
	start, end := w.Start.UnixMicro(), w.End.UnixMicro()
	if now >= end {
		start, end = end, w.Next.UnixMicro()
	}
	if now < start || now >= end || end <= c.Start {
		return
	}
	// What was counted after the new window began is in it.
	if start > c.Start {
		if c.Start, c.Returned = start, 0; start > c.Last {
			c.Count = 0
		}
	}
	c.End, c.Full = end, max(c.Full, end+(end-start))
}

// left is how many units the store may grant, never below 0. The cell must have been turned to the
// present. What is out, of processes that use their parts without the store, is not left.
func (c *Cell) left(at *Supply, r *Rule) int64 {
	switch r.Shape {
	case limit.Bucket:
		return r.Meter.Free(c.withheld(c.filled(at, r), r))
	case limit.Rolling:
		return max(0, r.Amount-at.away(r)-c.Count)
	}
	return max(0, r.Amount-c.Count)
}

// filled is how full a bucket is, with what those have saved up who are out.
func (c *Cell) filled(at *Supply, r *Rule) bucket.Fill {
	return bucket.Fill{At: c.Fill.At, Weight: max(c.Fill.Weight, at.floor(r.Meter.Cap, r.Meter.Drain))}
}

// copies is how many copies of a call the limit bears. Of a calendar window the store counts at least what the process
// knows to have gone: a store that has lost it would grant it again.
func (c *Cell) copies(at *Supply, k *Claim) int64 {
	c.turnTo(at, k.Rule, &k.Windows)
	if k.Rule.Shape == limit.Calendar && k.Start.UnixMicro() == c.Start {
		c.add(at, k.Rule, k.Seen-max(0, c.Returned-k.SeenBack)-c.Count)
	}
	switch {
	case c.Paused > at.Now:
		return 0
	case k.Cost == 0:
		return math.MaxInt64
	}
	return c.left(at, k.Rule) / k.Cost
}

// add charges units, whatever is left, but no more debt than some bursts.
func (c *Cell) add(at *Supply, r *Rule, n int64) {
	switch {
	case n <= 0:
		return
	case r.Shape == limit.Bucket:
		c.holds(at, r)
		c.pour(at, r, timesMost(n, r.Meter.Unit))
		return
	}
	n = min(n, max(0, bucket.LongestDebt*r.Amount-c.Count))
	switch c.Count += n; {
	case n == 0:
	case r.Shape == limit.Rolling:
		c.holds(at, r)
		c.note(r.Ring.Slot(at.Now), r.Ring.Grain, n)
	default:
		c.Last = max(c.Last, c.Start, at.Now)
	}
}

// pour adds a weight to a bucket. Debts beyond some bursts would hold a limit for ever, and numbers stay exact in a double.
func (c *Cell) pour(at *Supply, r *Rule, weight int64) {
	unknown := len(c.Slots) == 0 && c.Fill.Weight > 0
	c.Fill = c.filled(at, r)
	c.Fill.At = max(c.Fill.At, at.Z)
	if unknown { // another version of weir has written the cell: which of its units are open is not known
		c.Since = max(c.Since, c.Fill.At+1)
	}
	before := c.Fill.Weight
	if weight = max(0, min(weight, bucket.LongestDebt*r.Meter.Cap-before)); weight > 0 {
		c.Fill.Weight += weight
		c.record(&r.Meter, at.floor(r.Meter.Cap, r.Meter.Drain), before, weight)
	}
}

// note counts units in a slot, or in the last if the clock ran backwards.
func (c *Cell) note(slot, grain, n int64) {
	last := len(c.Slots) - 1
	if last >= 0 && c.Slots[last].Grain == grain && c.Slots[last].Number >= slot {
		c.Slots[last].Count += n
		return
	}
	c.Slots = append(c.Slots, Slot{slot, n, grain})
}

// Settle does what a settlement says.
func (c *Cell) Settle(at *Supply, s *Settlement) {
	c.turnTo(at, s.Rule, &s.Windows)
	if s.Back > 0 && s.Mark != (Mark{}) {
		c.back(s)
	}
	c.add(at, s.Rule, s.Owe)
	if s.Pause > 0 {
		c.Paused = max(c.Paused, min(at.Now+ceilMicros(s.Pause), lastInstant))
	}
	c.keep(at, s.Rule)
}

// keep notes until when the cell must not be forgotten: a store that forgets it later than that loses nothing.
func (c *Cell) keep(at *Supply, r *Rule) {
	switch r.Shape {
	case limit.Bucket:
		c.Full = c.Fill.At + r.Meter.Empty(c.Fill) + c.Hold
	case limit.Rolling:
		c.Full = at.Now + c.reset(at, r)
	}
}

// back has the units of a settlement come back, as far as its mark says that they count still.
func (c *Cell) back(s *Settlement) {
	switch s.Rule.Shape {
	case limit.Bucket:
		c.unrecord(&s.Rule.Meter, s.Mark, s.Back)
	case limit.Calendar:
		if s.Mark.At == c.Start {
			n := min(c.Count, s.Back)
			c.Count, c.Returned = c.Count-n, c.Returned+n
		}
	case limit.Rolling:
		c.unnote(s.Mark, s.Back)
	}
}

// unnote takes units out of the slot of a mark.
func (c *Cell) unnote(mark Mark, n int64) {
	i := slices.IndexFunc(c.Slots, func(s Slot) bool { return s.Number == mark.At && s.Grain == mark.Level })
	if i < 0 {
		return
	}
	n = min(n, c.Slots[i].Count)
	c.Count -= n
	if c.Slots[i].Count -= n; c.Slots[i].Count == 0 {
		c.Slots = slices.Delete(c.Slots, i, i+1)
	}
}

// Idle reports whether nothing is lost by forgetting the cell.
func (c *Cell) Idle(at *Supply) bool {
	if at.Now < c.Paused {
		return false
	}
	if c.Shape == limit.Bucket {
		return at.Z >= c.Full
	}
	return at.Now >= c.Full
}
