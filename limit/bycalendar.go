package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A byCalendar is the shape of a limit that counts in calendar windows. The usage of the present window is one word,
// and most decisions write nothing else. Amount, pause and window number change seldom. They are in a value that is
// replaced as a whole. The word of the old value is then shut, so that no goroutine writes to it any more.
type byCalendar struct {
	calendar *calendar
	window   atomic.Pointer[window]
}

// A window is the limit in one calendar window. All fields except used are set before it is published and do not
// change afterwards.
type window struct {
	amount int64
	page   int64 // the number of its page, which identifies it in turns
	paused time.Duration
	gone   bool
	used   atomic.Int64 // units in the window; ^units once the value has been replaced
}

// newByCalendar returns a limit with no usage in the present window.
func newByCalendar(amount int64, a *calendar) *byCalendar {
	x := &byCalendar{calendar: a}
	x.window.Store(&window{amount: amount, paused: never})
	return x
}

// copy returns a copy of w with this usage, to be changed and put in its place.
func (w *window) copy(used int64) *window {
	next := &window{amount: w.amount, page: w.page, paused: w.paused, gone: w.gone}
	next.used.Store(used)
	return next
}

// units returns the usage of the window. shut reports whether w has been replaced.
func (w *window) units() (n int64, shut bool) {
	if n = w.used.Load(); n < 0 {
		return ^n, true
	}
	return n, false
}

// change lets f change a copy of the present window and puts the copy in its place, unless f returns false.
func (x *byCalendar) change(now time.Duration, f func(next *window) bool) bool {
	for {
		_, w := x.at(now)
		used, shut := w.units()
		next := w.copy(used)
		if !f(next) {
			return false
		}
		if x.replace(w, next, used, shut) {
			return true
		}
	}
}

// replace puts next in the place of w, if its usage is still used.
func (x *byCalendar) replace(w, next *window, used int64, shut bool) bool {
	if !shut && !w.used.CompareAndSwap(used, ^used) {
		return false
	}
	return x.window.CompareAndSwap(w, next)
}

// at returns the present page and its window.
func (x *byCalendar) at(now time.Duration) (*page, *window) {
	p := x.calendar.at(now)
	for {
		w := x.window.Load()
		if w.page == p.number {
			return p, w
		}
		if w.page > p.number { // another goroutine has read a later page
			p = x.calendar.page.Load()
			continue
		}
		used, shut := w.units()
		x.replace(w, x.turned(p, w), used, shut)
	}
}

// turned returns the window of the page, which follows w.
func (x *byCalendar) turned(p *page, w *window) *window {
	next := w.copy(0)
	next.page = p.number
	if p.closed {
		next.used.Store(mostUsed)
	}
	return next
}

// take costs one load and one compare-and-swap, unless the window ends or something else changes at the same time.
func (x *byCalendar) take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	for {
		p, w := x.at(now)
		if w.gone {
			return Turn{}, 0, false
		}
		used, shut := w.units()
		switch wait = x.wait(now, p, w, used, n); {
		case n <= 0 || wait > 0:
			return Turn{}, wait, n == 0
		case shut:
			x.replace(w, w.copy(used), used, shut)
		case w.used.CompareAndSwap(used, used+n):
			return Turn{bucket.Turn{Place: w.page, Cost: n}}, 0, true
		}
	}
}

// ask moves to the next window if the present one has ended. It changes nothing else.
func (x *byCalendar) ask(now time.Duration, n int64) time.Duration {
	p, w := x.at(now)
	used, _ := w.units()
	return x.wait(now, p, w, used, n)
}

// wait returns how long n units must wait with this usage of the present window.
func (x *byCalendar) wait(now time.Duration, p *page, w *window, used, n int64) time.Duration {
	switch {
	case n <= 0 || n > w.amount:
		return unlessZero(n)
	case used+n <= w.amount && w.paused < p.until:
		return w.held(p, now)
	}
	return w.until(p, now, x.open(p, w))
}

// held returns how long the present window grants no units, even if some remain.
func (w *window) held(p *page, now time.Duration) time.Duration {
	return max(0, p.from-now, w.paused-now)
}

// until returns the time until something may be granted in the window that begins at start.
func (w *window) until(p *page, now time.Duration, start time.Time) time.Duration {
	return max(0, p.instant(start)-now, w.paused-now)
}

// open returns the beginning of the first later window in which something may be granted. If there is a pause, it is
// the window that contains the end of the pause.
func (x *byCalendar) open(p *page, w *window) time.Time {
	if w.paused < p.until {
		return p.end
	}
	start, _ := x.calendar.windows.Window(p.shown.Add(w.paused - p.read))
	return start
}

// mostWindows is how many later windows are computed one by one.
const mostWindows = 1024

// mostUsed is above any amount. It prevents wrong usage reports from overflowing the count.
const mostUsed = 1 << 60

// owe charges the present window, in which the upstream counts too. The debt ends with the window.
func (x *byCalendar) owe(now time.Duration, n int64) {
	for n > 0 {
		_, w := x.at(now)
		used, shut := w.units()
		if shut {
			x.replace(w, w.copy(used), used, shut)
		} else if w.used.CompareAndSwap(used, min(mostUsed, used+min(n, mostUsed))) {
			return
		}
	}
}

// back returns units to the window from which they were taken, and to no other.
func (x *byCalendar) back(now time.Duration, t Turn, n int64) {
	for n = min(n, t.Cost); n > 0; {
		_, w := x.at(now)
		used, shut := w.units()
		switch {
		case t.Place != w.page:
			return
		case shut:
			x.replace(w, w.copy(used), used, shut)
		case w.used.CompareAndSwap(used, max(0, used-n)):
			return
		}
	}
}

// pause grants nothing in the present window and in windows that begin before the end of the pause. It never shortens
// a pause.
func (x *byCalendar) pause(now, until time.Duration) {
	x.change(now, func(next *window) bool {
		if until <= now || until <= next.paused {
			return false
		}
		next.paused = until
		return true
	})
}

// lift ends a pause. Units that remain in the present window can be used.
func (x *byCalendar) lift(now time.Duration) {
	x.change(now, func(next *window) bool {
		if next.paused <= now {
			return false
		}
		next.paused = never
		return true
	})
}

// set changes the amount. A limit with another calendar needs another limiter.
func (x *byCalendar) set(c *change) bool {
	if c.limit.Shape != Calendar || c.limit.calendar() != x.calendar.windows {
		return false
	}
	return x.change(c.now, func(next *window) bool {
		next.amount = c.limit.Amount
		return true
	})
}

// look is exact. Reset is the time until the window ends, however much remains in it.
func (x *byCalendar) look(now time.Duration) Level {
	p, w := x.at(now)
	used, _ := w.units()
	return Level{
		Left:      max(0, w.amount-used),
		Full:      w.amount,
		PerSecond: float64(w.amount) / p.end.Sub(p.start).Seconds(),
		Reset:     p.until - now,
		ResetAt:   p.end,
		Paused:    w.held(p, now),
	}
}

func (x *byCalendar) pausedFor(now time.Duration) time.Duration { return x.look(now).Paused }

// retire succeeds for a window without usage: a new limiter would be the same.
func (x *byCalendar) retire(now time.Duration) bool {
	return x.change(now, func(next *window) bool {
		full := next.full(now) && !next.gone
		next.gone = true
		return full
	})
}

// untouched reports whether a new limiter would be the same.
func (x *byCalendar) untouched(now time.Duration) bool {
	_, w := x.at(now)
	return w.full(now)
}

// full reports whether forgetting the window loses nothing.
func (w *window) full(now time.Duration) bool {
	used, _ := w.units()
	return used == 0 && w.paused <= now
}

// retired reports whether callers that hold the limiter must look up the key again.
func (x *byCalendar) retired() bool { return x.window.Load().gone }

// close returns an heir with the same usage.
func (x *byCalendar) close(now time.Duration) (heir *Limiter, owed int64) {
	next := &byCalendar{calendar: x.calendar}
	x.change(now, func(w *window) bool {
		next.window.Store(w.copy(w.used.Load()))
		w.gone = true
		return true
	})
	return shapedAs(next), 0
}

// copyTo gives the copy the same calendar, so that all keys of a limit change windows together.
func (x *byCalendar) copyTo(m *Limiter) {
	w := x.window.Load()
	used, _ := w.units()
	t := &byCalendar{calendar: x.calendar}
	t.window.Store(w.copy(used))
	m.bucket.grow().instead = t
}

// empty leaves no units until the window ends, even if the amount is raised.
func (x *byCalendar) empty(now time.Duration) {
	x.change(now, func(next *window) bool {
		next.used.Store(mostUsed) // a larger amount must not make units available
		return true
	})
}

// calendar returns the calendar of the registry's limit if its windows are the same, otherwise a new one. It returns
// nil for limits of other shapes.
func (r *Registry) calendar(now time.Duration, l Limit) *calendar {
	if l.Shape != Calendar {
		return nil
	}
	if r.fresh != nil {
		if x, ok := r.fresh.counter().(*byCalendar); ok && x.calendar.windows == l.calendar() {
			return x.calendar
		}
	}
	return newCalendar(now, l.calendar(), r.wall)
}
