package fleet

import (
	"math"
	"slices"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Cell is the state of one limit for one key in a store. The zero Cell is full. Instants are microseconds of
// the store's clock. For shape Bucket they are by the supply's clock, except Paused. A Cell is not safe for
// concurrent use.
//
// A Bucket is filled by units and drains with time. It grants as many units as fit. That is GCRA with integers.
// A Rolling limit counts units by slot, and drops a slot when it is entirely older than the window. A Calendar
// limit counts the units of the current window. A returned unit is taken out where its mark shows that it was
// counted. It never counts for more than it has cost: if a bucket has run empty since, it counts for nothing.
//
// The weight of an empty bucket becomes negative with time, by up to Drain x hold. Only a call that costs more
// than a full bucket may use that; see Rule.Most.
type Cell struct {
	Shape limit.Shape

	// For shape Bucket. Fill is weighed by a meter with Unit and Drain. Marks from before Since have no value.
	Fill  bucket.Fill
	Unit  int64
	Drain int64
	Since int64

	Start int64 // for shape Calendar: the start of the window; it never decreases
	End   int64 // its end
	Last  int64 // when a unit was last counted in it
	Count int64 // units in the window, for shapes Rolling and Calendar

	Returned int64  // for shape Calendar: units returned in the window
	Slots    []Slot // for shape Rolling, and for shape Bucket as in history.go; the oldest first

	// Hold is the longest hold, in microseconds, of the processes that may still use their grants. HeldAt is,
	// for shape Bucket, when a process with that hold last got a grant. See hold.go.
	Hold, HeldAt int64

	Paused int64 // the end of the pause
	Full   int64 // when the limit is full again, so that the cell can be dropped without loss
}

// A Slot is the count of one slot of a ring. Number counts slots of the length Grain, in microseconds, since
// the epoch.
type Slot struct{ Number, Count, Grain int64 }

// Most returns the largest cost of a call. For a bucket with burst B, rate R and hold h, it is B, although the
// bucket holds only Cap = B - R*h. A call with a larger cost C is granted if the bucket has been empty for
// (C - Cap)/R, which is at most h. The weight is C after it. That keeps the limit:
//
// In a window of length t that ends with the call, at most R*(t + h) - (C - Cap) units are used that were granted
// before. With C, these are B + R*t. In a window of length t in which the call is the first that was granted, at
// most R*(t + h) - (C - Cap) units are granted after it. With C, these are B + R*t, too.
func (r *Rule) Most() int64 {
	if r.Shape == limit.Bucket {
		return (max(0, r.Meter.Cap) + r.Meter.Drains(r.Hold)) / r.Meter.Unit
	}
	return r.Amount
}

// isLarge reports whether a call costs more than a full bucket has.
func (k *Claim) isLarge() bool { return k.Rule.Shape == limit.Bucket && k.Cost > k.Rule.Meter.Most() }

// turnTo brings a cell to the instant, and to the rule if that has changed. Used units stay used.
func (c *Cell) turnTo(at *Supply, r *Rule, w *limit.Windows) {
	var gone int64
	if c.Shape != r.Shape {
		gone = c.gone(at)
		*c = Cell{Shape: r.Shape, Paused: c.Paused, Fill: bucket.Fill{At: at.Z}}
	}
	switch r.Shape {
	case limit.Bucket:
		c.drain(at.Z, r)
		c.holdTokens(at, r)
	case limit.Rolling:
		c.holdSlots(r)
		c.leave(at.Now, r)
	case limit.Calendar:
		c.enter(at.Now, w)
	}
	c.add(at, r, gone)
}

// gone returns the used units of a cell that changes its shape.
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

// drain applies the passage of time at the previous rate. Units taken before the bucket ran empty cannot
// return, nor can units that had another weight.
func (c *Cell) drain(now int64, r *Rule) {
	m, before := &r.Meter, c.Fill
	old := bucket.Meter{Unit: c.Unit, Drain: c.Drain}
	c.Fill = old.Drained(before, now)
	rests := c.Unit == m.Unit && c.Drain == m.Drain || before.At == 0 // a cell that is not stored
	if c.Fill.Weight <= 0 && now > before.At {
		c.Slots, c.Since = nil, now
		if rests {
			c.Fill.Weight = max(before.Weight-m.Drains(now-before.At), -m.Drains(max(c.Hold, r.Hold)))
		}
	}
	if c.Unit == m.Unit && c.Drain == m.Drain {
		return
	}
	if !rests {
		c.Fill.Weight = m.Convert(max(0, c.Fill.Weight), c.Unit)
	}
	if c.Unit > 0 {
		c.forgetHistory()
	}
	c.Unit, c.Drain = m.Unit, m.Drain
}

// leave drops slots that are older than the window.
func (c *Cell) leave(now int64, r *Rule) {
	for len(c.Slots) > 0 && now >= c.leaves(0, r) {
		c.Count -= c.Slots[0].Count
		c.Slots = c.Slots[1:]
	}
}

// leaves returns when slot i no longer counts. A slot of another grain may belong to a process with a longer
// hold than the requester.
func (c *Cell) leaves(i int, r *Rule) int64 {
	s := &c.Slots[i]
	at := r.Ring.Leaves(s.Number, s.Grain)
	if s.Grain != r.Ring.Grain {
		at += max(0, c.Hold-r.Hold)
	}
	return at
}

// enter begins a new window if the store's clock is in one. Units of the old window that were used after the
// new one began all count in the new one. That happens when a limit gets another zone or period, and therefore
// the cell is kept for one more period. A clock that runs backwards begins no window.
func (c *Cell) enter(now int64, w *limit.Windows) {
	start, end := w.Start.UnixMicro(), w.End.UnixMicro()
	if now >= end {
		start, end = end, w.Next.UnixMicro()
	}
	if now < start || now >= end || end <= c.Start {
		return
	}
	// Units that were counted after the new window began belong to it.
	if start > c.Start {
		if c.Start, c.Returned = start, 0; start > c.Last {
			c.Count = 0
		}
	}
	c.End, c.Full = end, max(c.Full, end+(end-start))
}

// left returns how many units the store may grant; it is not negative. The cell must be at the current instant.
// Parts that are out are not included.
func (c *Cell) left(at *Supply, r *Rule) int64 {
	switch r.Shape {
	case limit.Bucket:
		return r.Meter.Free(c.withheld(c.filled(at, r), r))
	case limit.Rolling:
		return max(0, r.Amount-at.away(r)-c.Count)
	}
	return max(0, r.Amount-c.Count)
}

// filled returns how full a bucket is, including the tokens that processes whose parts are out may have saved.
func (c *Cell) filled(at *Supply, r *Rule) bucket.Fill {
	return bucket.Fill{At: c.Fill.At, Weight: max(c.Fill.Weight, at.floor(r.Meter.Cap, r.Meter.Drain), 0)}
}

// copies returns how many copies of a call the limit allows. In a calendar window the store counts at least the
// usage that the process knows. A store that has lost the window would otherwise grant it again.
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
	case k.isLarge() && c.wait(at, k) == 0:
		return 1
	}
	return c.left(at, k.Rule) / k.Cost
}

// add charges units even if too few remain. Debt is bounded by a few bursts.
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

// pour adds a weight to a bucket. It bounds the debt, so that a limit recovers and numbers stay exact in a
// double.
func (c *Cell) pour(at *Supply, r *Rule, weight int64) {
	unknown := len(c.Slots) == 0 && c.Fill.Weight > 0
	c.Fill = c.filled(at, r)
	c.Fill.At = max(c.Fill.At, at.Z)
	if unknown { // another version of weir wrote the cell, so it is unknown which of its units are open
		c.Since = max(c.Since, c.Fill.At+1)
	}
	before := c.Fill.Weight
	if weight = max(0, min(weight, bucket.LongestDebt*r.Meter.Cap-before)); weight > 0 {
		c.Fill.Weight += weight
		c.record(&r.Meter, at.floor(r.Meter.Cap, r.Meter.Drain), before, weight)
	}
}

// note counts units in a slot, or in the last slot if the clock ran backwards.
func (c *Cell) note(slot, grain, n int64) {
	last := len(c.Slots) - 1
	if last >= 0 && c.Slots[last].Grain == grain && c.Slots[last].Number >= slot {
		c.Slots[last].Count += n
		return
	}
	c.Slots = append(c.Slots, Slot{slot, n, grain})
}

// Settle executes a settlement.
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

// keep sets the instant from which the store can drop the cell without loss.
func (c *Cell) keep(at *Supply, r *Rule) {
	switch r.Shape {
	case limit.Bucket:
		c.Full = c.Fill.At + r.Meter.Empty(c.Fill) + c.Hold
	case limit.Rolling:
		c.Full = at.Now + c.reset(at, r)
	}
}

// back returns the units of a settlement that still count according to its mark.
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

// Idle reports whether the cell can be dropped without loss.
func (c *Cell) Idle(at *Supply) bool {
	if at.Now < c.Paused {
		return false
	}
	if c.Shape == limit.Bucket {
		return at.Z >= c.Full
	}
	return at.Now >= c.Full
}
