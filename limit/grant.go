package limit

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// lastInstant is the last microsecond that stores count with.
const lastInstant = 1 << 53

// grant is the answer to a claim, after the cell has been charged.
func (c *Cell) grant(now int64, k *Claim, extra int64) Grant {
	c.keep(now, k.Rule)
	g := Grant{Extra: extra, Left: c.left(k.Rule), Mark: c.mark(k.Rule), Reset: micro(c.reset(now, k.Rule))}
	g.Paused = micro(max(0, c.Paused-now))
	g.Wait = max(g.Paused, micro(c.wait(now, k)))
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
	return max(0, c.gap(len(c.Slots), now, &r.Ring))
}

// gap is how many microseconds until the first n slots count no more.
func (c *Cell) gap(n int, now int64, r *bucket.Ring) int64 {
	last := now
	for i := range n {
		last = max(last, c.leaves(i, r))
	}
	return last - now
}

// never is a wait that does not end.
const never64 = math.MaxInt64

// wait is how many microseconds until one copy more could be granted.
func (c *Cell) wait(now int64, k *Claim) int64 {
	switch {
	case k.Cost > k.Rule.Most():
		return never64
	case k.Cost == 0 || c.left(k.Rule) >= k.Cost:
		return 0
	case k.Rule.Shape == Bucket:
		return max(0, c.Fill.At-now) + k.Rule.Meter.Wait(c.Fill, k.Cost)
	case k.Rule.Shape == Fixed:
		return max(0, c.End-now)
	}
	need, n := k.Cost-(k.Rule.Amount-c.Count), 0
	for n < len(c.Slots) && need > 0 {
		need -= c.Slots[n].Count
		n++
	}
	return c.gap(n, now, &k.Rule.Ring)
}

// mark is where the unit stands that was taken last.
func (c *Cell) mark(r *Rule) Mark {
	switch r.Shape {
	case Bucket:
		return Mark{c.Fill.At, c.Fill.Weight + c.Returned, c.Unit}
	case Fixed:
		return Mark{At: c.Start}
	}
	if n := len(c.Slots); n > 0 {
		return Mark{At: c.Slots[n-1].Number, Level: c.Slots[n-1].Grain}
	}
	return Mark{}
}

// micro is a number of microseconds.
func micro(n int64) time.Duration {
	if n > math.MaxInt64/1000 {
		return bucket.Never
	}
	return time.Duration(n) * time.Microsecond
}

// ceilMicro is a duration in microseconds, rounded up.
func ceilMicro(d time.Duration) int64 { return int64((d-1)/time.Microsecond) + 1 }
