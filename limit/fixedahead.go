package limit

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A slot is a window to come and the units that are booked in it. Those who come
// later never go before those who came earlier.
type slot struct {
	id         int64
	start, end time.Time
	units      int64
}

// replan moves those who wait, in their order, to windows that are not over when
// they come. None comes earlier than it was, unless the clock was wrong.
func (x *fixed) replan(p *page, s *sheet) []slot {
	start := x.open(p, s)
	moved := slices.Clone(s.ahead)
	for i := range moved {
		if m := &moved[i]; p.closed || m.start.Before(start) {
			m.start, m.end = x.almanac.calendar.Window(start)
		}
		start = moved[i].end
	}
	return moved
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

// mostSlots is how many windows to come are told apart.
const mostSlots = 1024

// next is where n units may be booked that do not go in the present window: in the
// last window in which somebody waits if there is room, else in the one after. i is
// the index of the slot, start that of a new one.
func (x *fixed) next(p *page, s *sheet, n int64) (i int, start time.Time) {
	i = len(s.ahead)
	if i == 0 {
		return 0, x.open(p, s)
	}
	if last := &s.ahead[i-1]; last.units+n <= s.amount {
		return i - 1, last.start
	} else {
		return i, last.end
	}
}

// wait is how long until something may go in the window that begins at start.
func (s *sheet) wait(p *page, now time.Duration, start time.Time) time.Duration {
	return max(0, p.instant(start)-now, s.paused-now)
}

// book books n units in slot i, which is a new one if there is none yet.
func (x *fixed) book(s *sheet, i int, start time.Time, n int64) (id int64) {
	s.ahead = slices.Clone(s.ahead)
	if i == len(s.ahead) {
		s.last++
		_, end := x.almanac.calendar.Window(start)
		s.ahead = append(s.ahead, slot{id: s.last, start: start, end: end})
	}
	s.ahead[i].units += n
	return s.ahead[i].id
}

// find is the slot of a turn that has not come yet, -1 if it is in none.
func (s *sheet) find(t Turn) int {
	return slices.IndexFunc(s.ahead, func(a slot) bool { return a.id == t.Place })
}

func (x *fixed) unbook(now time.Duration, t Turn, n int64) {
	x.change(now, func(_ *page, next *sheet) bool {
		i := next.find(t)
		if i < 0 {
			if t.Place == next.id { // its window has come meanwhile
				next.used.Store(max(0, next.used.Load()-n))
			}
			return t.Place == next.id
		}
		next.ahead = slices.Clone(next.ahead)
		if next.ahead[i].units -= n; next.ahead[i].units <= 0 {
			next.ahead = slices.Delete(next.ahead, i, i+1)
		}
		return true
	})
}

func (s *sheet) waiting() (n int64) {
	for _, a := range s.ahead {
		n += a.units
	}
	return n
}

func (x *fixed) assume(now time.Duration, ahead []slot) {
	x.change(now, func(p *page, next *sheet) bool {
		next.ahead = nil
		for _, a := range ahead {
			next.expect(p, x.almanac.calendar, a)
		}
		return len(ahead) > 0
	})
}

// expect counts what is booked in a slot of another limiter, perhaps of another
// calendar.
func (s *sheet) expect(p *page, c bucket.Calendar, a slot) {
	a.start, a.end = c.Window(a.start)
	k := len(s.ahead)
	switch {
	case a.start.Before(p.end):
		s.used.Add(a.units)
	case k > 0 && !a.start.After(s.ahead[k-1].start):
		s.ahead[k-1].units += a.units
	default:
		s.last++
		a.id = s.last
		s.ahead = append(s.ahead, a)
	}
}
