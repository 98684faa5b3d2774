package limit

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// turnTo brings a cell to the instant, and to the rule if that has changed: what
// has gone stays gone.
func (c *Cell) turnTo(now int64, r *Rule, w *Windows) {
	if c.Shape != r.Shape {
		*c = Cell{Shape: r.Shape, Paused: c.Paused}
	}
	switch r.Shape {
	case Bucket:
		c.Fill.Weight, c.Unit = r.Meter.Convert(c.Fill.Weight, c.Unit), r.Meter.Unit
		c.Fill = r.Meter.Drained(c.Fill, now)
	case Rolling:
		c.leave(now, &r.Ring)
	case Fixed:
		c.enter(now, w)
	}
}

// leave forgets slots that the window has left.
func (c *Cell) leave(now int64, r *bucket.Ring) {
	for len(c.Slots) > 0 && now >= c.leaves(0, r) {
		c.Count -= c.Slots[0].Count
		c.Slots = c.Slots[1:]
	}
}

// leaves is when a slot counts no more. A slot of another ring, from before a
// change of the limit, is kept by its own end.
func (c *Cell) leaves(i int, r *bucket.Ring) int64 {
	s := c.Slots[i]
	return (s.Number+1)*s.Grain + bucket.Slots*r.Grain
}

// enter begins a new window. A clock that runs backwards begins none.
func (c *Cell) enter(now int64, w *Windows) {
	start, end := w.Start.UnixMicro(), w.End.UnixMicro()
	if now >= end {
		start, end = end, w.Next.UnixMicro()
	}
	if start > c.Start {
		c.Start, c.Count = start, 0
	}
	if c.Start == start {
		c.End = end
	}
}

// left is how many units are there. The cell must have been turned to the present.
func (c *Cell) left(r *Rule) int64 {
	if r.Shape == Bucket {
		return r.Meter.Free(c.Fill)
	}
	return max(0, r.Amount-c.Count)
}

func (c *Cell) copies(now int64, k *Claim) int64 {
	c.turnTo(now, k.Rule, &k.Windows)
	if k.Rule.Shape == Fixed && k.Start.UnixMicro() == c.Start {
		c.Count = max(c.Count, k.Seen)
	}
	switch {
	case c.Paused > now:
		return 0
	case k.Cost == 0:
		return math.MaxInt64
	}
	return c.left(k.Rule) / k.Cost
}

// add charges units, whatever is left.
func (c *Cell) add(now int64, r *Rule, n int64) {
	switch {
	case n <= 0:
	case r.Shape == Bucket:
		c.Fill.Weight += min(n, longestDebt*r.Meter.Cap/r.Meter.Unit) * r.Meter.Unit
		c.Fill.At = max(c.Fill.At, now)
		c.Fill.Weight = min(c.Fill.Weight, longestDebt*r.Meter.Cap)
	case r.Shape == Fixed:
		c.Count += n
	default:
		c.Count += n
		slot := r.Ring.Slot(now)
		last := len(c.Slots) - 1
		if last >= 0 && c.Slots[last].Grain == r.Ring.Grain && c.Slots[last].Number >= slot {
			c.Slots[last].Count += n
			return
		}
		c.Slots = append(c.Slots, Slot{slot, n, r.Ring.Grain})
	}
}

// grant is the answer to a claim, after the cell has been charged.
func (c *Cell) grant(now int64, k *Claim, extra int64) Grant {
	g := Grant{Extra: extra, Left: c.left(k.Rule), Mark: c.mark(k.Rule)}
	g.Paused = micro(max(0, c.Paused-now))
	g.Wait = max(g.Paused, micro(c.wait(now, k)))
	g.Reset = micro(c.reset(now, k.Rule))
	c.Full = now + c.reset(now, k.Rule)
	return g
}

// reset is how many microseconds until everything is there again.
func (c *Cell) reset(now int64, r *Rule) int64 {
	switch r.Shape {
	case Bucket:
		return max(0, c.Fill.At-now) + r.Meter.Empty(c.Fill)
	case Fixed:
		return max(0, c.End-now)
	}
	if n := len(c.Slots); n > 0 {
		return max(0, c.leaves(n-1, &r.Ring)-now)
	}
	return 0
}

func micro(n int64) time.Duration {
	return time.Duration(min(n, math.MaxInt64/1000)) * time.Microsecond
}

// wait is how many microseconds until one copy more could be granted.
func (c *Cell) wait(now int64, k *Claim) int64 {
	if k.Cost == 0 || c.left(k.Rule) >= k.Cost {
		return 0
	}
	switch k.Rule.Shape {
	case Bucket:
		return max(0, c.Fill.At-now) + k.Rule.Meter.Wait(c.Fill, k.Cost)
	case Fixed:
		return max(0, c.End-now)
	}
	need := k.Cost - (k.Rule.Amount - c.Count)
	for i, s := range c.Slots {
		if need -= s.Count; need <= 0 {
			return max(1, c.leaves(i, &k.Rule.Ring)-now)
		}
	}
	return 0
}

func (c *Cell) mark(r *Rule) Mark {
	switch r.Shape {
	case Bucket:
		return Mark{c.Fill.At, c.Fill.Weight, r.Meter.Unit}
	case Fixed:
		return Mark{At: c.Start}
	}
	if n := len(c.Slots); n > 0 {
		return Mark{At: c.Slots[n-1].Number}
	}
	return Mark{}
}

// Settle does what a settlement says.
func (c *Cell) Settle(now int64, s *Settlement) {
	c.turnTo(now, s.Rule, &s.Windows)
	if s.Back > 0 && s.Mark != (Mark{}) {
		c.back(now, s)
	}
	if s.Owe > 0 {
		c.add(now, s.Rule, s.Owe)
	}
	if s.Pause > 0 {
		c.Paused = max(c.Paused, now+int64(s.Pause/time.Microsecond))
	}
	c.Full = now + c.reset(now, s.Rule)
}

func (c *Cell) back(now int64, s *Settlement) {
	switch {
	case s.Rule.Shape == Bucket && s.Mark.Step == s.Rule.Meter.Unit:
		mark := bucket.Fill{At: s.Mark.At, Weight: s.Mark.Level}
		c.Fill.Weight -= min(c.Fill.Weight, s.Rule.Meter.Back(mark, s.Back, max(now, c.Fill.At)))
	case s.Rule.Shape == Fixed && s.Mark.At == c.Start:
		c.Count -= min(c.Count, s.Back)
	case s.Rule.Shape == Rolling:
		for i := range c.Slots {
			if c.Slots[i].Number == s.Mark.At {
				n := min(s.Back, c.Slots[i].Count)
				c.Slots[i].Count -= n
				c.Count -= n
			}
		}
	}
}

// Idle reports whether nothing is lost by forgetting the cell.
func (c *Cell) Idle(now int64) bool { return now >= c.Full && now >= c.Paused }
