package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

func (p *places) pause(now, until time.Duration) {
	p.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Pause(now, until)) })
}

func (p *places) lift(now time.Duration) {
	p.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Resume(now)) })
}

// pace sets the rate of a bucket from now on, at most to the configured one. Limits of other shapes ignore it.
func (p *places) pace(now time.Duration, perSecond float64) {
	if p.instead() == nil {
		p.redraw(func(l *bucket.Line) *bucket.Line { return new(l.Pace(now, perSecond)) })
	}
}

// setLimit changes the limiter's rate and burst, or for a rolling limit its amount and period. Units taken stay
// taken, and remaining units stay up to the new burst. A learned rate is forgotten. It returns false and changes
// nothing if the limiter must be replaced (see bucket.Line.Change), for example for another shape.
func (m *Limiter) setLimit(now time.Duration, l Limit) bool {
	return l.Validate() == nil && m.shape().set(newChange(now, l))
}

// set also forgets a learned rate.
func (p *places) set(c *change) bool {
	if c.limit.Shape != Bucket || !p.redraw(c.line) {
		return false
	}
	if x := p.more.Load(); x != nil {
		x.rate.Store(nil)
	}
	return true
}

// A change is a new limit for many limiters. Limiters that share a timetable also share the new one: most keys have
// no separate one.
type change struct {
	now   time.Duration
	limit Limit
	lines map[*bucket.Line]*bucket.Line // old to new; nil if there is none
}

// newChange returns a change without timetables: each is made for the first limiter that needs it.
func newChange(now time.Duration, l Limit) *change {
	return &change{now, l, make(map[*bucket.Line]*bucket.Line)}
}

// line returns the timetable that replaces the old one, or nil.
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

// redraw replaces the present timetable by the next one, unless that is nil.
func (p *places) redraw(next func(*bucket.Line) *bucket.Line) bool {
	for {
		old := p.line.Load()
		line := next(old)
		if line == nil {
			return false
		}
		if *line == *old || p.line.CompareAndSwap(old, line) {
			return true
		}
	}
}

func (p *places) look(now time.Duration) Level {
	line := p.line.Load()
	at, booked := line.At(now), p.booked.Load()
	if booked == evicted {
		return Level{Left: line.Full(), Full: line.Full(), PerSecond: line.PerSecond()}
	}
	v := Level{
		Left:      min(p.there(line, at)/line.Unit(), line.Full()),
		Full:      line.Full(),
		PerSecond: line.PerSecond(),
		Reset:     line.Wait(now, line.FullAt(booked)),
	}
	if p.blocks() != nil {
		v.Reset = line.Wait(now, p.comes(line, at, line.Depth()))
	}
	if until, ok := line.PausedUntil(now); ok {
		v.Paused = until - now
	}
	if k := p.learner(); k != nil {
		v.CutFrom, v.CutAgo = k.Cut(now)
	}
	return v
}

func (p *places) pausedFor(now time.Duration) time.Duration {
	if until, ok := p.line.Load().PausedUntil(now); ok {
		return until - now
	}
	return 0
}

func (p *places) retire(now time.Duration) bool {
	booked := p.booked.Load()
	return p.full(now, booked) && p.booked.CompareAndSwap(booked, evicted)
}

// full reports whether all units are available and there is no pause. Such a limiter can be forgotten: a new one
// would be equal.
func (p *places) full(now time.Duration, booked int64) bool {
	line := p.line.Load()
	return !line.Paused(now) && line.At(now) >= line.FullAt(booked)
}

func (p *places) untouched(now time.Duration) bool { return p.full(now, p.booked.Load()) }

func (p *places) retired() bool {
	return p.booked.Load() == evicted || p.line.Load().Full() == 0 // or is about to be; see close
}

// close also passes a learned rate on.
func (p *places) close(now time.Duration) (heir *Limiter, owed int64) {
	var line *bucket.Line
	p.redraw(func(l *bucket.Line) *bucket.Line { line = l; return new(l.Shut()) })
	heir = &Limiter{}
	next := &heir.bucket
	next.line.Store(line)
	next.booked.Store(p.booked.Swap(evicted))
	if x := p.more.Load(); x != nil {
		x.returned.Store(nil)
		x.owed.Store(nil)
		if k := x.rate.Load(); k != nil {
			next.grow().rate.Store(k)
		}
	}
	booked := next.booked.Load()
	if booked == evicted {
		return heir, 0
	}
	return heir, (max(0, booked-line.At(now)) + line.Unit() - 1) / line.Unit()
}

func (p *places) copyTo(t *Limiter) {
	t.bucket.line.Store(p.line.Load())
	t.bucket.booked.Store(p.booked.Load())
}

func (p *places) empty(now time.Duration) { p.booked.Store(p.line.Load().At(now)) }
