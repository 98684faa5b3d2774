package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A fixed is the home of a calendar limit: what has gone in the present window is one
// word, which is all that most decisions write. What seldom changes stands in a sheet
// that never does, and is replaced by another; the word of the old one is then shut,
// so that nobody writes to it any more.
type fixed struct {
	almanac *almanac
	sheet   atomic.Pointer[sheet]
}

var _ shaped = (*fixed)(nil)

// A sheet is the limit in one window.
type sheet struct {
	amount int64
	window int64 // the number of its page, which names it in turns
	paused time.Duration
	gone   bool
	used   atomic.Int64 // units in the window; ^units once the sheet has been replaced
}

func newFixed(amount int64, a *almanac) *fixed {
	x := &fixed{almanac: a}
	x.sheet.Store(&sheet{amount: amount, paused: never})
	return x
}

// copy is a sheet to be changed and put in the place of s, in which used units have
// gone.
func (s *sheet) copy(used int64) *sheet {
	next := &sheet{amount: s.amount, window: s.window, paused: s.paused, gone: s.gone}
	next.used.Store(used)
	return next
}

// units is what has gone in the window of the sheet.
func (s *sheet) units() (n int64, shut bool) {
	if n = s.used.Load(); n < 0 {
		return ^n, true
	}
	return n, false
}

// change puts what f makes of a copy of the sheet in its place, unless f declines.
func (x *fixed) change(now time.Duration, f func(next *sheet) bool) bool {
	for {
		_, s := x.at(now)
		used, shut := s.units()
		next := s.copy(used)
		if !f(next) {
			return false
		}
		if x.replace(s, next, used, shut) {
			return true
		}
	}
}

// replace puts a sheet in the place of another, if that holds used units still.
func (x *fixed) replace(s, next *sheet, used int64, shut bool) bool {
	if !shut && !s.used.CompareAndSwap(used, ^used) {
		return false
	}
	return x.sheet.CompareAndSwap(s, next)
}

// at is the page of the present, and the sheet for it.
func (x *fixed) at(now time.Duration) (*page, *sheet) {
	p := x.almanac.at(now)
	for {
		s := x.sheet.Load()
		if s.window == p.number {
			return p, s
		}
		if s.window > p.number { // somebody knows of a later one
			p = x.almanac.page.Load()
			continue
		}
		used, shut := s.units()
		x.replace(s, x.turned(p, s), used, shut)
	}
}

// turned is the sheet that follows on s in the window of the page.
func (x *fixed) turned(p *page, s *sheet) *sheet {
	next := s.copy(0)
	next.window = p.number
	if p.closed {
		next.used.Store(mostUsed)
	}
	return next
}

func (x *fixed) take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	for {
		p, s := x.at(now)
		if s.gone {
			return Turn{}, 0, false
		}
		used, shut := s.units()
		switch wait = x.wait(now, p, s, used, n); {
		case n <= 0 || wait > 0:
			return Turn{}, wait, n == 0
		case shut:
			x.replace(s, s.copy(used), used, shut)
		case s.used.CompareAndSwap(used, used+n):
			return Turn{bucket.Turn{Place: s.window, Cost: n}}, 0, true
		}
	}
}

func (x *fixed) ask(now time.Duration, n int64) time.Duration {
	p, s := x.at(now)
	used, _ := s.units()
	return x.wait(now, p, s, used, n)
}

// wait is how long n units have to wait when so many have gone in the present window.
func (x *fixed) wait(now time.Duration, p *page, s *sheet, used, n int64) time.Duration {
	switch {
	case n <= 0 || n > s.amount:
		return unlessZero(n)
	case used+n <= s.amount && s.paused < p.until:
		return s.held(p, now)
	}
	return s.until(p, now, x.open(p, s))
}

// held is how long nothing goes in the present window, whatever is left.
func (s *sheet) held(p *page, now time.Duration) time.Duration {
	return max(0, p.from-now, s.paused-now)
}

// until is how long until something may go in the window that begins at start.
func (s *sheet) until(p *page, now time.Duration, start time.Time) time.Duration {
	return max(0, p.instant(start)-now, s.paused-now)
}

// open is the beginning of the first window to come in which something may go: that
// which holds the end of the pause, if there is one.
func (x *fixed) open(p *page, s *sheet) time.Time {
	if s.paused < p.until {
		return p.end
	}
	start, _ := x.almanac.calendar.Window(p.shown.Add(s.paused - p.read))
	return start
}

// mostWindows is how many windows to come are told apart.
const mostWindows = 1024

// mostUsed is more than any amount. It keeps broken answers from overflowing the
// count.
const mostUsed = 1 << 60

// owe charges the present window, which is the one in which the upstream counts. Its
// debt ends with it.
func (x *fixed) owe(now time.Duration, n int64) {
	for n > 0 {
		_, s := x.at(now)
		used, shut := s.units()
		if shut {
			x.replace(s, s.copy(used), used, shut)
		} else if s.used.CompareAndSwap(used, min(mostUsed, used+min(n, mostUsed))) {
			return
		}
	}
}

// back: what comes back counts in the window from which it was taken and in no other.
func (x *fixed) back(now time.Duration, t Turn, n int64) {
	for n = min(n, t.Cost); n > 0; {
		_, s := x.at(now)
		used, shut := s.units()
		switch {
		case t.Place != s.window:
			return
		case shut:
			x.replace(s, s.copy(used), used, shut)
		case s.used.CompareAndSwap(used, max(0, used-n)):
			return
		}
	}
}

func (x *fixed) pause(now, until time.Duration) {
	x.change(now, func(next *sheet) bool {
		if until <= now || until <= next.paused {
			return false
		}
		next.paused = until
		return true
	})
}

func (x *fixed) lift(now time.Duration) {
	x.change(now, func(next *sheet) bool {
		if next.paused <= now {
			return false
		}
		next.paused = never
		return true
	})
}

// set changes the amount. Another calendar is another limit.
func (x *fixed) set(now time.Duration, l *Limit) bool {
	if l.Shape != Fixed || l.calendar() != x.almanac.calendar {
		return false
	}
	return x.change(now, func(next *sheet) bool {
		next.amount = l.Amount
		return true
	})
}

func (x *fixed) look(now time.Duration) Level {
	p, s := x.at(now)
	used, _ := s.units()
	return Level{
		Left:      max(0, s.amount-used),
		Full:      s.amount,
		PerSecond: float64(s.amount) / p.end.Sub(p.start).Seconds(),
		Reset:     p.until - now,
		ResetAt:   p.end,
		Paused:    s.held(p, now),
	}
}

func (x *fixed) retire(now time.Duration) bool {
	return x.change(now, func(next *sheet) bool {
		full := next.full(now) && !next.gone
		next.gone = true
		return full
	})
}

func (x *fixed) untouched(now time.Duration) bool {
	_, s := x.at(now)
	return s.full(now)
}

func (s *sheet) full(now time.Duration) bool {
	used, _ := s.units()
	return used == 0 && s.paused <= now
}

func (x *fixed) retired() bool { return x.sheet.Load().gone }

// close: the heir counts what has gone here.
func (x *fixed) close(now time.Duration) (heir *Limiter, owed int64) {
	next := &fixed{almanac: x.almanac}
	x.change(now, func(s *sheet) bool {
		next.sheet.Store(s.copy(s.used.Load()))
		s.gone = true
		return true
	})
	heir = &Limiter{}
	heir.grow().shape = next
	return heir, 0
}

func (x *fixed) twin() shaped {
	s := x.sheet.Load()
	used, _ := s.units()
	t := &fixed{almanac: x.almanac}
	t.sheet.Store(s.copy(used))
	return t
}

func (x *fixed) drain(now time.Duration) {
	x.change(now, func(next *sheet) bool {
		next.used.Store(mostUsed) // a larger amount must not show some of it
		return true
	})
}

// almanac is that of the registry's limit, or of another in its place that has the
// same windows. Limits of other shapes have none.
func (r *Registry) almanac(now time.Duration, l Limit) *almanac {
	if l.Shape != Fixed {
		return nil
	}
	if r.fresh != nil {
		if x, ok := r.fresh.shaped().(*fixed); ok && x.almanac.calendar == l.calendar() {
			return x.almanac
		}
	}
	return newAlmanac(now, l.calendar(), r.wall)
}
