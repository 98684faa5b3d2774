package limit

import (
	"slices"
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

// A sheet is the limit in one window, and who waits for the windows to come.
type sheet struct {
	amount int64
	window int64 // the number of its page
	id     int64 // of its window, in turns; 0 is no window's
	last   int64 // the highest id that was given
	ahead  []slot
	paused time.Duration
	gone   bool
	used   atomic.Int64 // units in the window; ^units once the sheet has been replaced
}

func newFixed(amount int64, a *almanac) *fixed {
	x := &fixed{almanac: a}
	x.sheet.Store(&sheet{amount: amount, id: 1, last: 1, paused: never})
	return x
}

// copy is a sheet to be changed and put in the place of s, in which used units have
// gone.
func (s *sheet) copy(used int64) *sheet {
	next := &sheet{amount: s.amount, window: s.window, id: s.id, last: s.last, ahead: s.ahead, paused: s.paused, gone: s.gone}
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
func (x *fixed) change(now time.Duration, f func(p *page, next *sheet) bool) bool {
	for {
		p, s := x.at(now)
		used, shut := s.units()
		next := s.copy(used)
		if !f(p, next) {
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
	if !p.closed && len(s.ahead) > 0 && !s.ahead[0].start.After(p.start) {
		next.id, next.ahead = s.ahead[0].id, s.ahead[1:]
		next.used.Store(s.ahead[0].units)
	} else {
		next.last++
		next.id = next.last
	}
	if p.closed {
		next.used.Store(mostUsed)
	}
	next.ahead = x.replan(p, next)
	return next
}

func (x *fixed) take(now time.Duration, n int64, patience time.Duration) (t Turn, wait time.Duration, ok bool) {
	for {
		p, s := x.at(now)
		if s.gone {
			return Turn{}, 0, false
		}
		if n <= 0 || n > s.amount {
			return Turn{}, unlessZero(n), n == 0
		}
		used, shut := s.units()
		if shut {
			x.replace(s, s.copy(used), used, shut)
			continue
		}
		if s.holds(p, used, n) {
			if wait = s.held(p, now); wait > patience {
				return Turn{}, wait, false
			}
			if s.used.CompareAndSwap(used, used+n) {
				return s.turn(s.id, n), wait, true
			}
			continue
		}
		i, start := x.next(p, s, n)
		if wait = s.wait(p, now, start); wait > patience || i == mostSlots {
			return Turn{}, wait, false
		}
		next := s.copy(used)
		id := x.book(next, i, start, n)
		if x.replace(s, next, used, false) {
			return s.turn(id, n), wait, true
		}
	}
}

// holds reports whether n units may go in the present window, in which used have
// gone.
func (s *sheet) holds(p *page, used, n int64) bool {
	return len(s.ahead) == 0 && used+n <= s.amount && s.paused < p.until
}

func (s *sheet) turn(id, n int64) Turn { return Turn{bucket.Turn{Place: id, Cost: n}} }

// held is how long nothing goes in the present window, whatever is left.
func (s *sheet) held(p *page, now time.Duration) time.Duration {
	return max(0, p.from-now, s.paused-now)
}

func (x *fixed) ask(now time.Duration, n int64) time.Duration {
	p, s := x.at(now)
	if n <= 0 || n > s.amount {
		return unlessZero(n)
	}
	if used, _ := s.units(); s.holds(p, used, n) {
		return s.held(p, now)
	}
	_, start := x.next(p, s, n)
	return s.wait(p, now, start)
}

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

// due: what is neither of this window nor of one to come has come long ago, or costs
// nothing.
func (x *fixed) due(now time.Duration, t Turn) time.Duration {
	p, s := x.at(now)
	if i := s.find(t); i >= 0 {
		return s.wait(p, now, s.ahead[i].start)
	}
	return s.held(p, now)
}

// usable: a turn may be used until its window ends. The instant may be one to come,
// so no page is turned for it.
func (x *fixed) usable(at time.Duration, t Turn) bool {
	s := x.sheet.Load()
	p := x.almanac.page.Load() // not older than the sheet
	if i := s.find(t); i >= 0 {
		return at < p.instant(s.ahead[i].end)
	}
	return t.Place == s.id && s.window == p.number && at < p.until
}

// lapsed reports whether the window of a turn is over, or its turn was taken away: a
// smaller amount, or a clock that was set.
func (x *fixed) lapsed(now time.Duration, t Turn) bool {
	_, s := x.at(now)
	return t.Cost > 0 && t.Place != s.id && s.find(t) < 0
}

// back: what comes back counts in the window from which it was taken and in no other.
func (x *fixed) back(now time.Duration, t Turn, n int64) {
	n = min(n, t.Cost)
	for n > 0 {
		_, s := x.at(now)
		used, shut := s.units()
		switch {
		case t.Place != s.id:
			x.unbook(now, t, n)
			return
		case shut:
			x.replace(s, s.copy(used), used, shut)
		case s.used.CompareAndSwap(used, max(0, used-n)):
			return
		}
	}
}

func (x *fixed) pause(now, until time.Duration) {
	x.change(now, func(p *page, next *sheet) bool {
		if until <= now || until <= next.paused {
			return false
		}
		next.paused = until
		next.ahead = x.replan(p, next)
		return true
	})
}

func (x *fixed) lift(now time.Duration) {
	x.change(now, func(_ *page, next *sheet) bool {
		if next.paused <= now {
			return false
		}
		next.paused, next.ahead = never, nil
		return true
	})
}

// set changes the amount. Another calendar is another limit. Those who wait for a
// window in which more is booked than it now holds have to ask again, and all who wait
// if there is more now: their turns may come sooner.
func (x *fixed) set(now time.Duration, l *Limit) bool {
	if l.Shape != Fixed || l.calendar() != x.almanac.calendar {
		return false
	}
	return x.change(now, func(_ *page, next *sheet) bool {
		more := l.Amount > next.amount
		next.amount = l.Amount
		next.ahead = slices.DeleteFunc(slices.Clone(next.ahead), func(a slot) bool { return more || a.units > l.Amount })
		return true
	})
}

func (x *fixed) look(now time.Duration) Level {
	p, s := x.at(now)
	v := Level{
		Full:      s.amount,
		PerSecond: float64(s.amount) / p.end.Sub(p.start).Seconds(),
		Reset:     p.until - now,
		ResetAt:   p.end,
		Paused:    s.held(p, now),
	}
	if used, _ := s.units(); len(s.ahead) == 0 {
		v.Left = max(0, s.amount-used)
	}
	return v
}

func (x *fixed) retire(now time.Duration) bool {
	return x.change(now, func(_ *page, next *sheet) bool {
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
	return used == 0 && len(s.ahead) == 0 && s.paused <= now
}

func (x *fixed) retired() bool { return x.sheet.Load().gone }

// close leaves those who wait their turns here, and has the heir count them, too.
func (x *fixed) close(now time.Duration) (heir *Limiter, owed int64) {
	next := &fixed{almanac: x.almanac}
	x.change(now, func(_ *page, s *sheet) bool {
		next.sheet.Store(s.copy(s.used.Load()))
		s.gone = true
		owed = s.waiting()
		return true
	})
	heir = &Limiter{}
	heir.grow().shape = next
	return heir, owed
}

func (x *fixed) twin() shaped {
	s := x.sheet.Load()
	used, _ := s.units()
	t := &fixed{almanac: x.almanac}
	t.sheet.Store(s.copy(used))
	return t
}

func (x *fixed) drain(now time.Duration) {
	x.change(now, func(_ *page, next *sheet) bool {
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
