package limit

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Limiter holds all callers of one key to one limit. Most callers want Wait;
// Try is for work that may be dropped; Take and Due are for those who wait in
// their own way. It is safe for concurrent use and allocates nothing on the
// way to a yes or a no; of a bucket it takes no lock for that.
//
// The timetable (line) changes seldom and is read by all; booked is the last
// place given away and is the only word that a decision writes, but for those in spare.
type Limiter struct {
	line   atomic.Pointer[bucket.Line]
	booked atomic.Int64
	more   atomic.Pointer[more] // nil for most
}

// A Turn is what Take gives: the right to go, now or when Due says so.
type Turn struct{ bucket.Turn }

// ErrTooMuch means that a cost is above what the limit holds even when full, so
// that waiting cannot help.
var ErrTooMuch = errors.New("cost above the burst")

// ErrTooLate means that the turn would come later than the caller can wait.
var ErrTooLate = errors.New("turn would come too late")

// retired marks a booked word whose limiter has been evicted: no place behind it
// is ever reached.
const retired = bucket.End

// New makes a limiter that starts full.
func New(now time.Duration, l Limit) (*Limiter, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	line := l.line(now)
	r := Registry{wall: clock.System.Wall}
	return newLimiter(l, &line, r.almanac(now, l)), nil
}

// newLimiter has the almanac if its limit is fixed.
func newLimiter(l Limit, line *bucket.Line, a *almanac) *Limiter {
	m := &Limiter{}
	switch l.Shape {
	case Rolling:
		m.grow().shape = newRoll(l.window())
	case Fixed:
		m.grow().shape = newFixed(l.Amount, a)
	}
	m.line.Store(line)
	m.booked.Store(math.MinInt64 / 2)
	return m
}

// Try takes n units if they are there now.
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
	return m.takeMore(now, n)
}

// takeSince is take for who could have gone since an instant: the burst is counted from then on. Places
// that came back are worth no more for that.
func (m *Limiter) takeSince(now, since time.Duration, n int64) (Turn, bool) {
	line := m.line.Load()
	if since < now && m.shaped() == nil && m.spare() == nil && uint64(n-1) < uint64(line.Full()) && !line.Paused(now) {
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
		t, _, ok := r.take(now, n, 0)
		return t, ok
	}
	line := m.line.Load()
	if uint64(n-1) >= uint64(line.Full()) || line.Paused(now) {
		return Turn{}, n == 0
	}
	at, cost := line.At(now), line.Cost(n)
	for m.spare() == nil {
		booked := m.booked.Load()
		t := line.Next(booked, at, cost)
		if t.Place > at {
			return Turn{}, false
		}
		if m.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, true
		}
	}
	return m.gather(line, at, cost)
}

// there is how many places could be taken when the line has reached at.
func (m *Limiter) there(line *bucket.Line, at int64) int64 {
	low := line.Low(at)
	places := max(0, at-max(m.booked.Load(), low))
	if s := m.spare(); s != nil {
		places += s.Left(at, low)
	}
	return places
}

// Take books n units and says how long until they may go; if that is longer than
// patience it books nothing, and says how long it would have been.
func (m *Limiter) Take(now time.Duration, n int64, patience time.Duration) (t Turn, wait time.Duration, ok bool) {
	if t, ok = m.take(now, n); ok {
		return t, 0, true
	}
	if r := m.shaped(); r != nil {
		return r.take(now, n, patience)
	}
	return m.book(now, n, patience)
}

// book reserves a turn that has not come yet.
func (m *Limiter) book(now time.Duration, n int64, patience time.Duration) (Turn, time.Duration, bool) {
	for {
		line := m.line.Load()
		if uint64(n-1) >= uint64(line.Full()) {
			return Turn{}, bucket.Never, false
		}
		at, cost := line.At(now), line.Cost(n)
		booked := m.booked.Load()
		t := line.Next(booked, at, cost)
		if ahead, wait, none := m.ahead(line, now, cost, t.Place, patience); !none {
			return ahead, wait, wait <= patience
		}
		wait := line.Wait(now, t.Place)
		if wait > patience || t.Place >= bucket.End {
			return Turn{}, wait, false
		}
		if m.booked.CompareAndSwap(booked, t.Place) {
			return Turn{t}, wait, true
		}
	}
}

// Ask is how long a caller who took n units now would have to wait. It takes
// nothing.
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
	place := line.Next(m.booked.Load(), at, cost).Place
	if s := m.spare(); s != nil {
		if got, _, ok := s.Ahead(line, at, cost, place); ok {
			place = got.Place
		}
	}
	return line.Wait(now, place)
}

func unlessZero(n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return bucket.Never
}

// Due is how long a turn still has to wait: longer than Take said, if there was
// a pause or a slower rate since.
func (m *Limiter) Due(now time.Duration, t Turn) time.Duration {
	if r := m.shaped(); r != nil {
		return r.due(now, t)
	}
	if h := m.heir(); h != nil {
		wait := h.to.Due(now, h.turn(t))
		if until, paused := m.line.Load().PausedUntil(now); paused {
			wait = max(wait, until-now)
		}
		return wait
	}
	return m.line.Load().Wait(now, t.Place)
}

// Usable reports whether a turn that came would still be good at the instant. It
// matters to who holds a turn while waiting for another limit, and to who waits
// for an instant that he was told before the rate became faster: others have been
// given what came since, and he must not go on top of them.
func (m *Limiter) Usable(now time.Duration, t Turn) bool {
	if r := m.shaped(); r != nil {
		return r.usable(now, t)
	}
	if h := m.heir(); h != nil {
		return h.to.Usable(now, h.turn(t))
	}
	return t.Turn.Usable(m.line.Load(), now)
}

// mostLate is how late a caller may wake for its turn, and use it although the burst has
// passed it. A whole line that wakes late sends no more at once than came due meanwhile.
const mostLate = 100 * time.Millisecond

// missed reports whether a turn that has come must not be used any more by a caller who
// was told to come at an instant.
func (m *Limiter) missed(now, told time.Duration, t Turn) bool {
	return m.overtaken(told, t) || m.lapsed(now, t) || now-told > mostLate && !m.Usable(now, t)
}

// overtaken reports whether a faster rate has brought a turn so far forward that
// it was passed before the instant that the caller was told. A caller who comes late for
// that instant is not meant.
func (m *Limiter) overtaken(told time.Duration, t Turn) bool { return !m.Usable(told-1, t) }

// lapsed reports whether a turn is good no more although its holder did not know:
// that of a calendar window that is over, however soon he is told.
func (m *Limiter) lapsed(now time.Duration, t Turn) bool {
	x, ok := m.shaped().(*fixed)
	return ok && x.lapsed(now, t)
}

// Back gives n units of a turn back, all of them if n is the turn's whole cost
// or more. What the burst has passed meanwhile is gone, as it would be from a
// bucket that is full. A turn must not be given back twice.
func (m *Limiter) Back(now time.Duration, t Turn, n int64) {
	if r := m.shaped(); r != nil {
		r.back(now, t, n)
		return
	}
	if h := m.heir(); h != nil {
		if t.Low >= h.from { // the heir began empty, so nothing of it was reserved for others
			h.to.Back(now, h.turn(t), n)
		}
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
		m.putSpare(back)
	}
	m.absorb()
}

// Wait takes n units, waiting for its turn. It returns at once, with ErrTooLate
// or ErrTooMuch, if the turn would come after ctx's deadline or never. A caller
// who leaves gives the turn back.
func (m *Limiter) Wait(ctx context.Context, c clock.Clock, n int64) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	now := c.Now()
	t, wait, ok := m.Take(now, n, patience(ctx, c, now))
	for ok && wait > 0 {
		told := now + wait
		if err := c.Sleep(ctx, wait); err != nil {
			m.Back(c.Now(), t, bucket.All)
			return err
		}
		now = c.Now()
		t, wait, ok = m.again(now, told, t, n, patience(ctx, c, now))
	}
	switch {
	case ok:
		return nil
	case wait == bucket.Never:
		return fmt.Errorf("take %d: %w", n, ErrTooMuch)
	}
	return fmt.Errorf("take %d: %w: in %v", n, ErrTooLate, wait.Round(time.Millisecond))
}

// again is what has become of a turn when the instant has come that its holder
// was told.
func (m *Limiter) again(now, told time.Duration, t Turn, n int64, patience time.Duration) (Turn, time.Duration, bool) {
	wait := m.Due(now, t)
	if wait == 0 && !m.missed(now, told, t) || wait > 0 && wait <= patience {
		return t, wait, true
	}
	m.Back(now, t, bucket.All)
	if wait > 0 {
		return Turn{}, wait, false
	}
	return m.Take(now, n, patience)
}

// patience is how long ctx may still wait.
func patience(ctx context.Context, c clock.Clock, now time.Duration) time.Duration {
	if at, ok := c.Deadline(ctx); ok {
		return max(0, at-now)
	}
	return bucket.Never - 1
}
