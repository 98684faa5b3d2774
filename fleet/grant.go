package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// lastInstant is the largest instant, in microseconds, that stores compute with.
const lastInstant = 1 << 53

// grant returns the response to a claim, after the cell has been charged, including extra units. Its waits
// ignore units that other processes may return or take meanwhile.
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

// reset returns how many microseconds it takes until the limit is full.
func (c *Cell) reset(at *Supply, r *Rule) int64 {
	switch r.Shape {
	case limit.Bucket:
		return at.Reset(&r.Meter, c.Fill)
	case limit.Calendar:
		return max(0, c.End-at.Now)
	}
	return max(0, c.gap(len(c.Slots), at.Now, r))
}

// gap returns how many microseconds it takes until the first n slots no longer count.
func (c *Cell) gap(n int, now int64, r *Rule) int64 {
	last := now
	for i := range n {
		last = max(last, c.leaves(i, r))
	}
	return last - now
}

// never64 is a wait that does not end.
const never64 = math.MaxInt64

// wait returns how many microseconds it takes until one more copy could be granted, or never64 if it costs more
// than the limit.
func (c *Cell) wait(at *Supply, k *Claim) int64 {
	switch {
	case k.Cost > k.Rule.Most():
		return never64
	case k.Cost == 0 || c.left(at, k.Rule) >= k.Cost:
		return 0
	case k.isLarge():
		return at.Wait(&k.Rule.Meter, c.withheld(c.Fill, k.Rule), k.Cost)
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

// mark returns the position of the last units taken: the instant for a bucket, the slot for a rolling limit,
// the window for a calendar limit. Returned units carry it, so that they are credited where they were charged,
// or not at all.
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

// micros converts microseconds to a Duration.
func micros(n int64) time.Duration {
	if n > math.MaxInt64/1000 {
		return bucket.Never
	}
	return time.Duration(n) * time.Microsecond
}

// ceilMicros converts a Duration to microseconds, rounded up.
func ceilMicros(d time.Duration) int64 { return int64((d-1)/time.Microsecond) + 1 }
