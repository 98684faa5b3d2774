package limit

import (
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Limiter holds all callers of one key to one limit: it says whether so many units can
// go now, and if not, when they could. It makes nobody wait and books nothing for later;
// calls wait in a line (package line), which asks again. It is safe for concurrent use and
// allocates nothing on the way to a yes or a no; of a bucket it takes no lock for that.
//
// Its state is what it has given away, on an axis of supply: places stand one behind the other,
// and a timetable says at which instant each of them is there. A place is given to one call only,
// when it is there and the burst has not passed it; that is the whole proof that no window of
// length t sees more than burst + rate*t. The first of a line that wakes late may count the burst from up to
// mostLate ago (takeSince): then what came due meanwhile goes at once.
//
// The timetable (line) changes seldom and is read by all; booked is the last place given
// away and is the only word that a decision writes, but for what came back (see returned) and
// while several cores take from it at once (see blocks).
type Limiter struct {
	line   atomic.Pointer[bucket.Line]
	booked atomic.Int64
	more   atomic.Pointer[more] // nil for most
}

// A Turn is what Take gives, for Back. The zero Turn is that of nothing.
type Turn struct{ bucket.Turn }

// retired marks a booked word whose limiter has been evicted: no place behind it
// is ever reached.
const retired = bucket.End

// New makes a limiter of this process alone, by itself, that starts full: with all of its burst, or an
// empty window. Calendar limits go by the system's clock on the wall. An error says all that is wrong
// with the limit. Programs with several keys want NewRegistry.
func New(now time.Duration, l Limit) (*Limiter, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	line := l.line(now)
	r := Registry{wall: clock.System.Wall}
	return newLimiter(l, &line, r.calendar(now, l)), nil
}

// newLimiter has the calendar if its limit is fixed.
func newLimiter(l Limit, line *bucket.Line, a *calendar) *Limiter {
	m := &Limiter{}
	switch l.Shape {
	case Rolling:
		m.grow().shape = newRolling(l.window())
	case Calendar:
		m.grow().shape = newByCalendar(l.Amount, a)
	}
	m.line.Store(line)
	m.booked.Store(lowest)
	return m
}

// Try takes n units if they are there now, and reports whether it did. What it takes cannot be given
// back: see Take for that.
func (m *Limiter) Try(now time.Duration, n int64) bool {
	_, ok := m.take(now, n)
	return ok
}

// take is the path of nearly every decision: one load, one compare-and-swap. A
// cost of 0 is always met, one below 0 or above the burst never.
func (m *Limiter) take(now time.Duration, n int64) (Turn, bool) {
	if m.more.Load() != nil {
		return m.takeMore(now, n)
	}
	line := m.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, n == 0
	}
	at := line.At(now)
	booked := m.booked.Load()
	t := line.Next(booked, at, line.Cost(n))
	if t.Place > at {
		return Turn{}, false
	}
	if m.booked.CompareAndSwap(booked, t.Place) {
		return Turn{t}, true
	}
	m.contended(line, now, n)
	return m.takeMore(now, n)
}

// takeSince is take for who could have gone since an instant: the burst is counted from then on. Places
// that came back are worth no more for that.
func (m *Limiter) takeSince(now, since time.Duration, n int64) (Turn, bool) {
	line := m.line.Load()
	if since < now && m.shaped() == nil && m.returned() == nil && uint64(n-1) < uint64(line.Full()) && !line.Paused(now) {
		booked := m.booked.Load()
		if t := line.Next(booked, line.At(since), line.Cost(n)); t.Place <= line.At(now) && m.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, true
		}
	}
	return m.take(now, n)
}

// takeMore is take for a limiter that has, or may have, more.
func (m *Limiter) takeMore(now time.Duration, n int64) (Turn, bool) {
	if r := m.shaped(); r != nil {
		t, _, ok := r.take(now, n)
		return t, ok
	}
	line := m.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, n == 0
	}
	at, cost := line.At(now), line.Cost(n)
	if b := m.blocks(); b != nil && n == 1 && b.on(now) {
		if t, ok := b.take(m, line, at); ok {
			return t, true
		}
	}
	for m.returned() == nil {
		booked := m.booked.Load()
		t := line.Next(booked, at, cost)
		if t.Place > at {
			break
		}
		if m.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, true
		}
		m.contended(line, now, n)
	}
	m.pour(line, at)
	if m.returned() == nil {
		return Turn{}, false
	}
	return m.gather(line, at, cost)
}

// there is how many places could be taken when the line has reached at.
func (m *Limiter) there(line *bucket.Line, at int64) int64 {
	low := line.Low(at)
	places := max(0, at-max(m.booked.Load(), low))
	if s := m.returned(); s != nil {
		places += s.Left(at, low)
	}
	if b := m.blocks(); b != nil {
		places += b.left(line, at)
	}
	return places
}

// Take takes n units if they are there now. If they are not it takes nothing, and says how
// long it takes until they are if nobody else takes any; bucket.Never if they never will be.
func (m *Limiter) Take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	if m.more.Load() == nil {
		if t, wait = m.takeOrAsk(now, n); wait == 0 {
			return t, 0, true
		} else if wait > 0 {
			return Turn{}, wait, false
		}
	}
	if r := m.shaped(); r != nil {
		return r.take(now, n)
	}
	for {
		if t, ok = m.take(now, n); ok { // at first, and when something came back meanwhile
			return t, 0, true
		}
		if wait = m.Ask(now, n); wait > 0 {
			return Turn{}, wait, false
		}
	}
}

// takeOrAsk is Take of a limiter of which nothing came back, and that no other core writes just then: below 0 if
// it is not known.
func (m *Limiter) takeOrAsk(now time.Duration, n int64) (Turn, time.Duration) {
	line := m.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, -1
	}
	at, booked := line.At(now), m.booked.Load()
	t := line.Next(booked, at, line.Cost(n))
	if t.Place > at {
		return Turn{}, max(1, line.Until(now, t.Place))
	}
	if m.booked.CompareAndSwap(booked, t.Place) {
		return Turn{t}, 0
	}
	m.contended(line, now, n)
	return Turn{}, -1
}

// Ask is how long it takes until n units are there if nobody takes any: 0 if they are there now,
// bucket.Never if they never will be. It takes nothing, and promises nothing: others may take them.
func (m *Limiter) Ask(now time.Duration, n int64) time.Duration {
	if r := m.shaped(); r != nil {
		return r.ask(now, n)
	}
	line := m.line.Load()
	if uint64(n-1) >= uint64(line.Full()) {
		return unlessZero(n)
	}
	at, cost := line.At(now), line.Cost(n)
	if !line.Paused(now) && m.there(line, at) >= cost {
		return 0
	}
	return line.Wait(now, m.comes(line, at, cost))
}

// comes is the place that the line must reach for so many to be there. Some of what came
// back may have been passed by then, so that it is looked for.
func (m *Limiter) comes(line *bucket.Line, at, cost int64) int64 {
	m.pour(line, at)
	place := line.Next(m.booked.Load(), at, cost).Place
	if m.returned() == nil {
		return place
	}
	for low := at; low < place; {
		if mid := low + (place-low)/2; m.there(line, mid) >= cost {
			place = mid
		} else {
			low = mid + 1
		}
	}
	return place
}

// unlessZero is the wait for a cost that is never met, but for 0, which always is.
func unlessZero(n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return bucket.Never
}

// mostLate is how late the first of a line may ask, and still take what came since it was
// entitled to, although its burst is smaller. A line that wakes late sends no more at once
// than came within it.
const mostLate = 100 * time.Millisecond

// Back gives n units of a turn back, all of them if n is the turn's whole cost
// or more (bucket.All). They pay for debts first, and then are there for whoever comes
// next. What the burst has passed meanwhile is gone, as it would be from a bucket that is
// full; of a calendar limit they count in the window from which they were taken and in no
// other. A turn must not be given back twice. Those who wait do not hear of it: their line
// has to be kicked.
func (m *Limiter) Back(now time.Duration, t Turn, n int64) {
	if r := m.shaped(); r != nil {
		r.back(now, t, n)
		return
	}
	cost := t.Cost
	if unit := m.line.Load().Unit(); n < cost/unit {
		cost = n * unit
	}
	if cost <= 0 {
		return
	}
	back := t.Top(m.redeem(now, cost))
	if back.Cost > 0 && (!back.Whole() || !m.booked.CompareAndSwap(back.Place, back.Low)) {
		m.putReturned(back)
	}
	m.absorb()
}
