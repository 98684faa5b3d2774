package llmsim

import (
	"math"
	"math/bits"
	"slices"
	"time"
)

// A gauge measures a Rate: a bucket that refills continuously, or the sum over a window. It may become negative if more was
// used than reserved.
type gauge struct {
	r Rate

	at    time.Duration // bucket: the time of level
	level int64
	part  uint64 // fraction of the next unit, in 1/Per

	entries []*entry // window: taken units, oldest first
}

// An entry is a number of units taken at one time.
type entry struct {
	at time.Duration
	n  int64
}

func newGauge(r Rate, now time.Duration) *gauge {
	if r.N <= 0 {
		return nil
	}
	if r.Per <= 0 {
		r.Per = time.Minute
	}
	if r.Burst <= 0 || r.Window {
		r.Burst = r.N
	}
	return &gauge{r: r, at: now, level: r.Burst}
}

func (g *gauge) none() bool { return g == nil }

// room returns the available units.
func (g *gauge) room(now time.Duration) int64 {
	if !g.r.Window {
		g.fill(now)
		return g.level
	}
	g.entries = slices.DeleteFunc(g.entries, func(e *entry) bool { return now-e.at >= g.r.Per })
	room := g.r.N
	for _, e := range g.entries {
		room -= e.n
	}
	return room
}

// fill refills a bucket. It adds complete units and keeps the fraction of the next one, so that frequent calls gain or lose
// nothing.
func (g *gauge) fill(now time.Duration) {
	hi, lo := bits.Mul64(uint64(max(now-g.at, 0)), uint64(g.r.N))
	lo, carry := bits.Add64(lo, g.part, 0)
	hi += carry
	g.at = max(g.at, now)
	gain := uint64(math.MaxInt64)
	if hi < uint64(g.r.Per) {
		gain, g.part = bits.Div64(hi, lo, uint64(g.r.Per))
	}
	if lacks := g.r.Burst - g.level; lacks <= 0 || gain >= uint64(lacks) {
		g.level, g.part = g.r.Burst, 0
		return
	}
	g.level += int64(gain)
}

func (g *gauge) wait(now time.Duration, _ time.Time, n int64) (d time.Duration, never bool) {
	lacks := n - g.room(now)
	switch {
	case n > g.r.Burst:
		return g.full(now), true
	case lacks <= 0:
		return 0, false
	case g.r.Window:
		return g.expiry(now, lacks), false
	}
	return g.filled(lacks), false
}

// filled returns the time until a bucket gains n units, rounded up.
func (g *gauge) filled(n int64) time.Duration {
	hi, lo := bits.Mul64(uint64(n), uint64(g.r.Per))
	lo, borrow := bits.Sub64(lo, g.part, 0)
	hi -= borrow
	lo, carry := bits.Add64(lo, uint64(g.r.N-1), 0)
	hi += carry
	if hi >= uint64(g.r.N) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(g.r.N))
	return time.Duration(min(q, math.MaxInt64))
}

// expiry returns the time until n units have left a window.
func (g *gauge) expiry(now time.Duration, n int64) time.Duration {
	for _, e := range g.entries {
		if n -= e.n; n <= 0 {
			return e.at + g.r.Per - now
		}
	}
	return g.r.Per
}

// full returns the time until all units are available.
func (g *gauge) full(now time.Duration) time.Duration {
	lacks := g.r.Burst - g.room(now)
	switch {
	case lacks <= 0:
		return 0
	case g.r.Window:
		return g.entries[len(g.entries)-1].at + g.r.Per - now
	}
	return g.filled(lacks)
}

func (g *gauge) charge(now time.Duration, _ time.Time, n int64) *entry {
	if !g.r.Window {
		g.fill(now)
		g.level -= n
		return &entry{at: now, n: n}
	}
	if k := len(g.entries) - 1; k >= 0 && g.entries[k].at == now {
		g.entries[k].n += n
		return g.entries[k]
	}
	e := &entry{at: now, n: n}
	g.entries = append(g.entries, e)
	return e
}

// adjust takes n more units, or returns -n. In a window they count at the start of the call.
func (g *gauge) adjust(now time.Duration, _ time.Time, e *entry, n int64) {
	if g.r.Window {
		e.n += n
		return
	}
	g.fill(now)
	g.level = min(g.level-n, g.r.Burst)
}

func (g *gauge) facts(now time.Duration) (limit, used int64, per time.Duration) {
	return g.r.Burst, g.r.Burst - g.room(now), g.r.Per
}

// A daily is a quota per calendar day.
type daily struct {
	n    int64
	zone *time.Location
	day  string
	used int64
}

func newDaily(n int64, zone *time.Location) *daily {
	if n <= 0 {
		return nil
	}
	if zone == nil {
		zone = time.UTC
	}
	return &daily{n: n, zone: zone}
}

func (d *daily) none() bool { return d == nil }

// turn starts a new day if necessary.
func (d *daily) turn(wall time.Time) {
	if day := wall.In(d.zone).Format(time.DateOnly); day != d.day {
		d.day, d.used = day, 0
	}
}

func (d *daily) wait(_ time.Duration, wall time.Time, n int64) (time.Duration, bool) {
	d.turn(wall)
	if d.used+n <= d.n {
		return 0, false
	}
	y, m, day := wall.In(d.zone).Date()
	return time.Date(y, m, day+1, 0, 0, 0, 0, d.zone).Sub(wall), n > d.n
}

func (d *daily) charge(now time.Duration, wall time.Time, n int64) *entry {
	d.turn(wall)
	d.used += n
	return &entry{at: now, n: n}
}

// adjust corrects the current day, also for a call of the previous day.
func (d *daily) adjust(_ time.Duration, wall time.Time, _ *entry, n int64) {
	d.turn(wall)
	d.used = max(d.used+n, 0)
}

func (d *daily) facts(time.Duration) (limit, used int64, per time.Duration) {
	return d.n, d.used, 24 * time.Hour
}
