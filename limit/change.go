package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// Pause stops everyone who takes from the limiter until the instant. It never shortens a
// pause.
func (m *Limiter) Pause(now, until time.Duration) {
	if r := m.shaped(); r != nil {
		r.pause(now, until)
		return
	}
	m.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Pause(now, until)) })
}

// Resume ends a pause before its time. Nothing has come of a bucket meanwhile. Those who
// wait do not hear of it: their line has to be kicked.
func (m *Limiter) Resume(now time.Duration) {
	if r := m.shaped(); r != nil {
		r.lift(now)
		return
	}
	m.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Resume(now)) })
}

// pace lets the limiter run at another rate from now on, at most the configured
// one. Rolling limits have no pace.
func (m *Limiter) pace(now time.Duration, perSecond float64) {
	if m.shaped() == nil {
		m.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Pace(now, perSecond)) })
	}
}

// setLimit gives the limiter another rate and burst, or another amount and period if
// it is rolling. What has been taken stays taken and what was left stays left,
// up to the new burst. What a rate has learnt is forgotten. It reports false
// if the change is beyond what a limiter can bear (see bucket.Line.Change; or
// another shape), and then nothing changed.
func (m *Limiter) setLimit(now time.Duration, l Limit) bool {
	return l.Validate() == nil && m.set(newChange(now, l))
}

// set is setLimit for one of many limiters of a valid limit.
func (m *Limiter) set(c *change) bool {
	if r := m.shaped(); r != nil {
		return r.set(c.now, &c.limit)
	}
	if c.limit.Shape != Bucket || !m.redraw(c.line) {
		return false
	}
	if x := m.more.Load(); x != nil {
		x.rate.Store(nil)
	}
	return true
}

// A change is another limit on its way to many limiters. Those that share a
// timetable share one afterwards, too: most keys have none of their own.
type change struct {
	now   time.Duration
	limit Limit
	lines map[*bucket.Line]*bucket.Line // old to new; nil if there is none
}

// newChange has no timetables yet: each is made for the first limiter that needs it.
func newChange(now time.Duration, l Limit) *change {
	return &change{now, l, make(map[*bucket.Line]*bucket.Line)}
}

// line is the timetable that follows the old one, or nil.
func (c *change) line(old *bucket.Line) *bucket.Line {
	next, known := c.lines[old]
	if known {
		return next
	}
	if line, ok := old.Change(c.now, c.limit.Rate); ok {
		line = c.limit.pace(c.now, line)
		next = &line
	}
	c.lines[old] = next
	return next
}

// redraw puts the next timetable in place of the present one, unless it is nil.
func (m *Limiter) redraw(next func(*bucket.Line) *bucket.Line) bool {
	for {
		old := m.line.Load()
		line := next(old)
		if line == nil {
			return false
		}
		if *line == *old || m.line.CompareAndSwap(old, line) {
			return true
		}
	}
}

// Look says what the limiter looks like, and takes nothing. It is of one instant but not of one
// moment: while others take, Left may be a little old.
func (m *Limiter) Look(now time.Duration) Level {
	if r := m.shaped(); r != nil {
		return r.look(now)
	}
	line := m.line.Load()
	at, booked := line.At(now), m.booked.Load()
	if booked == retired {
		return Level{Left: line.Full(), Full: line.Full(), PerSecond: line.PerSecond()}
	}
	v := Level{
		Left:      min(m.there(line, at)/line.Unit(), line.Full()),
		Full:      line.Full(),
		PerSecond: line.PerSecond(),
		Reset:     line.Wait(now, line.FullAt(booked)),
	}
	if m.blocks() != nil {
		v.Reset = line.Wait(now, m.comes(line, at, line.Depth()))
	}
	if until, ok := line.PausedUntil(now); ok {
		v.Paused = until - now
	}
	return v
}

// paused is how long a pause still lasts, without a look at the rest.
func (m *Limiter) paused(now time.Duration) time.Duration {
	switch r := m.shaped().(type) {
	case nil:
		if until, ok := m.line.Load().PausedUntil(now); ok {
			return until - now
		}
		return 0
	case *leased:
		return r.Paused(now)
	default:
		return r.look(now).Paused
	}
}

// retire takes a limiter out of use if it is full, so that forgetting it forgets
// nothing but a rate that was learnt long ago. Whoever still holds it is refused
// and must look the key up again; see gone.
func (m *Limiter) retire(now time.Duration) bool {
	if r := m.shaped(); r != nil {
		return r.retire(now)
	}
	booked := m.booked.Load()
	return m.full(now, booked) && m.booked.CompareAndSwap(booked, retired)
}

// full reports whether everything is there and there is no pause: to forget such a limiter and to
// make it anew is the same.
func (m *Limiter) full(now time.Duration, booked int64) bool {
	line := m.line.Load()
	return !line.Paused(now) && line.At(now) >= line.FullAt(booked)
}

// untouched is full for a limiter of any shape.
func (m *Limiter) untouched(now time.Duration) bool {
	if r := m.shaped(); r != nil {
		return r.untouched(now)
	}
	return m.full(now, m.booked.Load())
}

// gone reports whether the limiter has been evicted from its registry.
func (m *Limiter) gone() bool {
	if r := m.shaped(); r != nil {
		return r.retired()
	}
	return m.booked.Load() == retired || m.line.Load().Full() == 0 // or is about to be; see close
}

// close takes a limiter out of use whatever it holds. The heir is one for those
// who come next, which stands where this one stood; owed is how many units it is in debt.
func (m *Limiter) close(now time.Duration) (heir *Limiter, owed int64) {
	if r := m.shaped(); r != nil {
		return r.close(now)
	}
	var line *bucket.Line
	m.redraw(func(l *bucket.Line) *bucket.Line { line = l; return new(l.Shut()) })
	heir = &Limiter{}
	heir.line.Store(line)
	heir.booked.Store(m.booked.Swap(retired))
	if x := m.more.Load(); x != nil {
		x.returned.Store(nil)
		x.owed.Store(nil)
		if k := x.rate.Load(); k != nil {
			heir.grow().rate.Store(k)
		}
	}
	booked := heir.booked.Load()
	if booked == retired {
		return heir, 0
	}
	return heir, (max(0, booked-line.At(now)) + line.Unit() - 1) / line.Unit()
}

// clone is another limiter that stands where this one stands, which nobody uses.
func (m *Limiter) clone() *Limiter {
	t := &Limiter{}
	m.copyTo(t)
	return t
}

// copyTo is clone into the zero Limiter.
func (m *Limiter) copyTo(t *Limiter) {
	if r := m.shaped(); r != nil {
		t.grow().shape = r.clone()
	}
	t.line.Store(m.line.Load())
	t.booked.Store(m.booked.Load())
}

// empty empties a limiter that nobody uses yet.
func (m *Limiter) empty(now time.Duration) {
	if r := m.shaped(); r != nil {
		r.empty(now)
		return
	}
	m.booked.Store(m.line.Load().At(now))
}
