package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A calendar determines the present calendar window for all keys of a limit. Windows only move forward: a wall clock
// that is set back does not lead back. The wall clock is read about once a second. If it is set across the end of a
// window, up to a second's calls are counted in the previous window.
type calendar struct {
	windows bucket.Calendar
	wall    func(at time.Duration) time.Time
	page    atomic.Pointer[page]
	look    atomic.Int64 // when to read the wall clock next
}

// A page is one window of a calendar, with instants by the present wall clock.
type page struct {
	number     int64 // increases with each window
	start, end time.Time
	from       time.Duration // instant of start; in the future if the clock was set back
	until      time.Duration // instant of end
	read       time.Duration // instant at which the wall clock showed shown
	shown      time.Time
	closed     bool // no units are granted in this window; see after
}

const (
	lookEvery = time.Second
	// drift is by how much the wall clock may differ before instants are computed again. Two readings of one clock
	// differ by less.
	drift = time.Millisecond
)

// newCalendar starts with the window of the present wall clock.
func newCalendar(now time.Duration, c bucket.Calendar, wall func(time.Duration) time.Time) *calendar {
	a := &calendar{windows: c, wall: wall}
	shown := wall(now)
	start, end := c.Window(shown)
	a.page.Store(newPage(page{start: start, end: end}, now, shown))
	a.look.Store(int64(now + lookEvery))
	return a
}

// newPage returns p with its instants computed for a wall clock that shows the given time now.
func newPage(p page, now time.Duration, shown time.Time) *page {
	p.read, p.shown = now, shown
	p.from, p.until = p.instant(p.start), p.instant(p.end)
	return &p
}

// instant returns when the wall clock will show the time.
func (p *page) instant(t time.Time) time.Duration {
	d := t.Sub(p.shown) // at most what a Duration holds
	if d > bucket.Never-1-p.read {
		return bucket.Never - 1
	}
	return p.read + d
}

// at returns the present page.
func (a *calendar) at(now time.Duration) *page {
	p := a.page.Load()
	if now < p.until && int64(now) < a.look.Load() {
		return p
	}
	return a.turn(now, p)
}

// turn reads the wall clock and moves to the next page if the present one has ended.
func (a *calendar) turn(now time.Duration, p *page) *page {
	next := a.after(p, now, a.wall(now))
	if next == p {
		a.look.Store(int64(now + lookEvery))
		return p
	}
	if a.page.CompareAndSwap(p, next) {
		a.look.Store(int64(now + lookEvery))
	}
	return a.page.Load()
}

// after returns the page that follows from the time that the wall clock shows.
//
// A clock in the previous window was set back a little. Nothing is granted until it shows the present window again,
// whose usage is kept. A clock before that was wrong, perhaps by years, and the usage of the window that it shows now
// is unknown. Nothing is granted in that window, and afterwards all is normal.
func (a *calendar) after(p *page, now time.Duration, shown time.Time) *page {
	if !shown.Before(p.end) {
		start, end := a.windows.Window(shown)
		return newPage(page{number: p.number + 1, start: start, end: end}, now, shown)
	}
	if shown.Before(p.start) {
		if before, _ := a.windows.Window(p.start.Add(-1)); shown.Before(before) {
			start, end := a.windows.Window(shown)
			return newPage(page{number: p.number + 1, start: start, end: end, closed: true}, now, shown)
		}
	}
	if now < p.until && (p.instant(shown)-now).Abs() <= drift {
		return p
	}
	return newPage(*p, now, shown)
}
