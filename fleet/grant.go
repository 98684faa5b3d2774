package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// lastInstant is the last microsecond that stores count with.
const lastInstant = 1 << 53

// grant is the answer to a claim, after the cell has been charged: extra units are among what it was charged. What it says
// of waits counts nothing that others may give back or take meanwhile.
func (c *Cell) grant(at *Supply, k *Claim, extra int64) Grant {
	c.keep(at, k.Rule)
	g := Grant{Extra: extra, Left: c.left(at, k.Rule), Mark: c.mark(k.Rule), Reset: micros(c.reset(at, k.Rule))}
	g.Paused = micros(max(0, c.Paused-at.Now))
	switch k.Rule.Shape {
	case limit.Bucket:
		g.Drain = micros(at.Drain(&k.Rule.Meter, c.Fill))
	case limit.Calendar:
		g.Back = c.Returned
	}
	g.Cold = at.Cold && k.Rule.Shape != limit.Calendar && !k.Rule.Tally
	g.Wait = max(g.Paused, micros(c.wait(at, k)))
	return g
}

// reset is how many microseconds until everything is there again.
func (c *Cell) reset(at *Supply, r *Rule) int64 {
	switch r.Shape {
	case limit.Bucket:
		return at.Reset(&r.Meter, c.Fill)
	case limit.Calendar:
		return max(0, c.End-at.Now)
	}
	return max(0, c.gap(len(c.Slots), at.Now, r))
}

// gap is how many microseconds until the first n slots count no more.
func (c *Cell) gap(n int, now int64, r *Rule) int64 {
	last := now
	for i := range n {
		last = max(last, c.leaves(i, r))
	}
	return last - now
}

// never is a wait that does not end.
const never64 = math.MaxInt64

// wait is how many microseconds until one copy more could be granted; never64 if it costs more than the limit holds.
func (c *Cell) wait(at *Supply, k *Claim) int64 {
	switch {
	case k.Cost > k.Rule.Most():
		return never64
	case k.Cost == 0 || c.left(at, k.Rule) >= k.Cost:
		return 0
	case k.Rule.Shape == limit.Bucket:
		return at.Wait(&k.Rule.Meter, c.withheld(c.filled(at, k.Rule), k.Rule), k.Cost)
	case k.Rule.Shape == limit.Calendar:
		return max(0, c.End-at.Now)
	}
	need, n := k.Cost-(k.Rule.Amount-c.Count), 0
	if need += at.away(k.Rule); need > c.Count {
		return at.change()
	}
	for n < len(c.Slots) && need > 0 {
		need -= c.Slots[n].Count
		n++
	}
	return c.gap(n, at.Now, k.Rule)
}

// mark is where the units stand that were taken last: of a bucket the instant, of a rolling limit
// its slot, of a calendar limit the window. What comes back says it, so that it counts where it was taken, or not at all.
func (c *Cell) mark(r *Rule) Mark {
	switch r.Shape {
	case limit.Bucket:
		return Mark{At: c.Fill.At, Level: 1}
	case limit.Calendar:
		return Mark{At: c.Start}
	}
	if n := len(c.Slots); n > 0 {
		return Mark{At: c.Slots[n-1].Number, Level: c.Slots[n-1].Grain}
	}
	return Mark{}
}

// micros is a number of microseconds.
func micros(n int64) time.Duration {
	if n > math.MaxInt64/1000 {
		return bucket.Never
	}
	return time.Duration(n) * time.Microsecond
}

// ceilMicros is a duration in microseconds, rounded up.
func ceilMicros(d time.Duration) int64 { return int64((d-1)/time.Microsecond) + 1 }
