package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A byCalendar is the shape of a limit that counts in calendar windows: what has gone in the
// present one is one word, which is all that most decisions write. What changes seldom (amount,
// pause, which window it is) stands beside that word in a value that is replaced as a whole; the
// word of the old one is then shut, so that nobody writes to it any more.
type byCalendar struct {
	calendar *calendar
	window   atomic.Pointer[window]
}

// A window is the limit in one calendar window. All fields but used are set before others see it, and
// do not change afterwards.
type window struct {
	amount int64
	page   int64 // the number of its page, which names it in turns
	paused time.Duration
	gone   bool
	used   atomic.Int64 // units in the window; ^units once the value has been replaced
}

// newByCalendar begins with nothing used in the window of the present.
func newByCalendar(amount int64, a *calendar) *byCalendar {
	x := &byCalendar{calendar: a}
	x.window.Store(&window{amount: amount, paused: never})
	return x
}

// copy is a value for the same window, to be changed and put in the place of w. So many units
// have gone in it.
func (w *window) copy(used int64) *window {
	next := &window{amount: w.amount, page: w.page, paused: w.paused, gone: w.gone}
	next.used.Store(used)
	return next
}

// units is what has gone in the window. shut says that w has been replaced.
func (w *window) units() (n int64, shut bool) {
	if n = w.used.Load(); n < 0 {
		return ^n, true
	}
	return n, false
}

// change puts what f makes of a copy of the present window in its place, unless f declines.
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

// replace puts next in the place of w, if so many units have gone in that still.
func (x *byCalendar) replace(w, next *window, used int64, shut bool) bool {
	if !shut && !w.used.CompareAndSwap(used, ^used) {
		return false
	}
	return x.window.CompareAndSwap(w, next)
}

// at is the page of the present, and the window for it.
func (x *byCalendar) at(now time.Duration) (*page, *window) {
	p := x.calendar.at(now)
	for {
		w := x.window.Load()
		if w.page == p.number {
			return p, w
		}
		if w.page > p.number { // somebody knows of a later one
			p = x.calendar.page.Load()
			continue
		}
		used, shut := w.units()
		x.replace(w, x.turned(p, w), used, shut)
	}
}

// turned is the window of the page, which follows on w.
func (x *byCalendar) turned(p *page, w *window) *window {
	next := w.copy(0)
	next.page = p.number
	if p.closed {
		next.used.Store(mostUsed)
	}
	return next
}

// take is one load and one compare-and-swap, unless the window ends or something else changes
// at the same time.
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

// ask turns the page if the window has ended, and changes nothing else.
func (x *byCalendar) ask(now time.Duration, n int64) time.Duration {
	p, w := x.at(now)
	used, _ := w.units()
	return x.wait(now, p, w, used, n)
}

// wait is how long n units have to wait when so many have gone in the present window.
func (x *byCalendar) wait(now time.Duration, p *page, w *window, used, n int64) time.Duration {
	switch {
	case n <= 0 || n > w.amount:
		return unlessZero(n)
	case used+n <= w.amount && w.paused < p.until:
		return w.held(p, now)
	}
	return w.until(p, now, x.open(p, w))
}

// held is how long nothing goes in the present window, whatever is left.
func (w *window) held(p *page, now time.Duration) time.Duration {
	return max(0, p.from-now, w.paused-now)
}

// until is how long until something may go in the window that begins at start.
func (w *window) until(p *page, now time.Duration, start time.Time) time.Duration {
	return max(0, p.instant(start)-now, w.paused-now)
}

// open is the beginning of the first window to come in which something may go: that
// which holds the end of the pause, if there is one.
func (x *byCalendar) open(p *page, w *window) time.Time {
	if w.paused < p.until {
		return p.end
	}
	start, _ := x.calendar.windows.Window(p.shown.Add(w.paused - p.read))
	return start
}

// mostWindows is how many windows to come are told apart.
const mostWindows = 1024

// mostUsed is more than any amount. It keeps broken answers from overflowing the
// count.
const mostUsed = 1 << 60

// owe charges the present window, which is the one in which the upstream counts. Its
// debt ends with it.
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

// back: what comes back counts in the window from which it was taken and in no other.
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

// pause holds whatever is left in the present window, and windows to come that begin before its
// end. It never shortens a pause.
func (x *byCalendar) pause(now, until time.Duration) {
	x.change(now, func(next *window) bool {
		if until <= now || until <= next.paused {
			return false
		}
		next.paused = until
		return true
	})
}

// lift ends a pause: what is left in the present window can go.
func (x *byCalendar) lift(now time.Duration) {
	x.change(now, func(next *window) bool {
		if next.paused <= now {
			return false
		}
		next.paused = never
		return true
	})
}

// set changes the amount. Another calendar is another limit.
func (x *byCalendar) set(c *change) bool {
	if c.limit.Shape != Calendar || c.limit.calendar() != x.calendar.windows {
		return false
	}
	return x.change(c.now, func(next *window) bool {
		next.amount = c.limit.Amount
		return true
	})
}

// look is exact. Reset is until the window ends, however much is left in it.
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

// retire is for a window in which nothing has gone: a new limiter would say the same.
func (x *byCalendar) retire(now time.Duration) bool {
	return x.change(now, func(next *window) bool {
		full := next.full(now) && !next.gone
		next.gone = true
		return full
	})
}

// untouched reports whether a new limiter would say the same.
func (x *byCalendar) untouched(now time.Duration) bool {
	_, w := x.at(now)
	return w.full(now)
}

// full reports whether nothing is lost by forgetting the window.
func (w *window) full(now time.Duration) bool {
	used, _ := w.units()
	return used == 0 && w.paused <= now
}

// retired reports whether whoever holds it has to look the key up again.
func (x *byCalendar) retired() bool { return x.window.Load().gone }

// close: the heir counts what has gone here.
func (x *byCalendar) close(now time.Duration) (heir *Limiter, owed int64) {
	next := &byCalendar{calendar: x.calendar}
	x.change(now, func(w *window) bool {
		next.window.Store(w.copy(w.used.Load()))
		w.gone = true
		return true
	})
	return shapedAs(next), 0
}

// copyTo looks at the same calendar: all keys of a limit turn its pages together.
func (x *byCalendar) copyTo(m *Limiter) {
	w := x.window.Load()
	used, _ := w.units()
	t := &byCalendar{calendar: x.calendar}
	t.window.Store(w.copy(used))
	m.bucket.grow().instead = t
}

// empty leaves nothing until the window ends, also if the amount becomes larger.
func (x *byCalendar) empty(now time.Duration) {
	x.change(now, func(next *window) bool {
		next.used.Store(mostUsed) // a larger amount must not show some of it
		return true
	})
}

// calendar is that of the registry'w limit, or of another in its place that has the
// same windows. Limits of other shapes have none.
func (r *Registry) calendar(now time.Duration, l Limit) *calendar {
	if l.Shape != Calendar {
		return nil
	}
	if r.fresh != nil {
		if x, ok := r.fresh.shape().(*byCalendar); ok && x.calendar.windows == l.calendar() {
			return x.calendar
		}
	}
	return newCalendar(now, l.calendar(), r.wall)
}
