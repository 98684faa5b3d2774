package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A calendar says which calendar window it is, to all keys of a limit. Windows only
// move forward: a clock on the wall that is set back leads back into none. It is
// looked at about once a second, so when it is set over the end of a window up to a
// second's calls are counted in the window before.
type calendar struct {
	windows bucket.Calendar
	wall    func(at time.Duration) time.Time
	page    atomic.Pointer[page]
	look    atomic.Int64 // the instant of the next look at the wall
}

// A page of an calendar is one window, as the clock on the wall now goes.
type page struct {
	number     int64 // higher for each later window
	start, end time.Time
	from       time.Duration // the instant of start; it is to come again if the clock was set back
	until      time.Duration // that of end
	read       time.Duration // the instant at which the wall showed shown
	shown      time.Time
	closed     bool // nothing goes in this window; see after
}

const (
	lookEvery = time.Second
	// drift is by how much the wall may go wrong before instants are computed anew: two
	// readings of one clock differ by less.
	drift = time.Millisecond
)

// newCalendar begins with the window that the wall shows now.
func newCalendar(now time.Duration, c bucket.Calendar, wall func(time.Duration) time.Time) *calendar {
	a := &calendar{windows: c, wall: wall}
	shown := wall(now)
	start, end := c.Window(shown)
	a.page.Store(newPage(page{start: start, end: end}, now, shown))
	a.look.Store(int64(now + lookEvery))
	return a
}

// newPage is p with its instants as the clock on the wall goes now, which shows a time at this instant.
func newPage(p page, now time.Duration, shown time.Time) *page {
	p.read, p.shown = now, shown
	p.from, p.until = p.instant(p.start), p.instant(p.end)
	return &p
}

// instant is when the wall will show the time.
func (p *page) instant(t time.Time) time.Duration {
	d := t.Sub(p.shown) // at most what a Duration holds
	if d > bucket.Never-1-p.read {
		return bucket.Never - 1
	}
	return p.read + d
}

// at is the page of the present.
func (a *calendar) at(now time.Duration) *page {
	p := a.page.Load()
	if now < p.until && int64(now) < a.look.Load() {
		return p
	}
	return a.turn(now, p)
}

// turn looks at the wall and turns the page if it has ended.
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

// after is the page that follows from what the wall shows.
//
// A wall that shows the window before the present one was set back a little: nothing
// goes until it shows the present one again, in which what has gone has gone. A wall
// that shows an earlier time was wrong, perhaps by years, and nobody knows how much
// has gone in the window that it shows now: nothing goes in that, and then all is as
// ever.
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
