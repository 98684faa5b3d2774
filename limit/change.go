package limit

import (
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// Pause stops everyone who takes from the limiter, those who wait for their turn
// included, until the instant. It never shortens a pause.
func (m *Limiter) Pause(now, until time.Duration) {
	if r := m.roll(); r != nil {
		r.pause(now, until)
		return
	}
	m.redraw(func(l *bucket.Line) (bucket.Line, bool) { return l.Pause(now, until), true })
}

// Pace lets the limiter run at another rate from now on, at most the configured
// one. Rolling limits have no pace.
func (m *Limiter) Pace(now time.Duration, perSecond float64) {
	if m.roll() == nil {
		m.redraw(func(l *bucket.Line) (bucket.Line, bool) { return l.Pace(now, perSecond), true })
	}
}

// Set gives the limiter another rate and burst, or another amount and period if
// it is rolling. What has been taken stays taken and what was left stays left,
// up to the new burst; those who wait keep their turns, even if they cost more
// than the new burst holds. It reports false if the change is beyond what a limiter
// can bear (see bucket.Line.Change; or another shape), and then nothing changed.
func (m *Limiter) Set(now time.Duration, l Limit) bool {
	if (m.roll() != nil) != (l.Shape == Rolling) || l.Validate() != nil {
		return false
	}
	if r := m.roll(); r != nil {
		r.set(now, l.window())
		return true
	}
	if !m.redraw(func(old *bucket.Line) (bucket.Line, bool) { return old.Change(now, l.Rate) }) {
		return false
	}
	if m.grow().rate.Store(nil); l.Adaptive.On {
		m.Pace(now, l.Adaptive.WithDefaults(l.PerSecond()).Start)
	}
	return true
}

func (m *Limiter) redraw(next func(*bucket.Line) (bucket.Line, bool)) bool {
	for {
		old := m.line.Load()
		line, ok := next(old)
		if !ok {
			return false
		}
		if line == *old || m.line.CompareAndSwap(old, &line) {
			return true
		}
	}
}

// Look says what the limiter looks like, and takes nothing.
func (m *Limiter) Look(now time.Duration) Level {
	if r := m.roll(); r != nil {
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
	if until, ok := line.PausedUntil(now); ok {
		v.Paused = until - now
	}
	return v
}

// retire takes a limiter out of use if it is full, so that forgetting it forgets
// nothing but a rate that was learnt long ago. Whoever still holds it is refused
// and must look the key up again; see Retired.
func (m *Limiter) retire(now time.Duration) bool {
	if r := m.roll(); r != nil {
		return r.retire(now)
	}
	line, booked := m.line.Load(), m.booked.Load()
	if line.Paused(now) || line.At(now) < line.FullAt(booked) {
		return false
	}
	return m.booked.CompareAndSwap(booked, retired)
}

// Retired reports whether the limiter has been evicted from its registry.
func (m *Limiter) Retired() bool {
	if r := m.roll(); r != nil {
		return r.retired()
	}
	return m.booked.Load() == retired
}

// close takes a limiter out of use whatever it holds. Those who wait keep their
// turns; it says how many units they are still to use.
func (m *Limiter) close(now time.Duration) (owed int64) {
	if r := m.roll(); r != nil {
		return r.close(now)
	}
	m.redraw(func(l *bucket.Line) (bucket.Line, bool) { return l.Shut(), true })
	line, booked := m.line.Load(), m.booked.Swap(retired)
	m.grow().spare.Store(nil)
	if booked == retired {
		return 0
	}
	return (max(0, booked-line.At(now)) + line.Unit() - 1) / line.Unit()
}

// drain empties a limiter.
func (m *Limiter) drain(now time.Duration) {
	if r := m.roll(); r != nil {
		r.take(now, r.state.Load().window.Amount, 0)
		return
	}
	m.booked.Store(m.line.Load().At(now))
}
