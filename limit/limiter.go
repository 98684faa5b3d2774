package limit

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Limiter applies one limit to all callers of one key. It decides whether a number of units is available now and,
// if not, when. It does not wait and reserves nothing: calls wait in package line, which asks again. It is safe for
// concurrent use. Decisions do not allocate, and those of a bucket take no lock.
//
// The behavior depends on the shape. Nearly every limiter is a local bucket, whose state is in the Limiter itself.
type Limiter struct{ bucket places }

// New returns a single local limiter that starts full: with the complete burst, or an empty window. Calendar limits
// use the system's wall clock. The error has all mistakes of the limit. Programs with several keys use NewRegistry.
func New(now time.Duration, l Limit) (*Limiter, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	line := l.line(now)
	r := Registry{wall: clock.System.Wall}
	return newLimiter(l, &line, r.calendar(now, l)), nil
}

// newLimiter returns a limiter. It uses the calendar if the limit is fixed.
func newLimiter(l Limit, line *bucket.Line, a *calendar) *Limiter {
	m := &Limiter{}
	switch l.Shape {
	case Rolling:
		m = shapedAs(newRolling(l.window()))
	case Calendar:
		m = shapedAs(newByCalendar(l.Amount, a))
	}
	m = budgetOf(&l, m)
	m.bucket.line.Store(line)
	m.bucket.booked.Store(lowest)
	return m
}

// shapedAs returns a limiter that is not a local bucket.
func shapedAs(s shape) *Limiter {
	m := &Limiter{}
	m.bucket.grow().instead = s
	return m
}

// twin returns an unused copy of the limiter.
func twin(m *Limiter) *Limiter {
	t := &Limiter{}
	m.shape().copyTo(t)
	return t
}

// shape returns the implementation of the limiter.
func (m *Limiter) shape() shape {
	if s := m.bucket.instead(); s != nil {
		return s
	}
	return &m.bucket
}

// Try takes n units if they are available now, and reports whether it did. They cannot be returned: use Take for
// that.
func (m *Limiter) Try(now time.Duration, n int64) bool {
	_, ok := m.bucket.try(now, n, new(core))
	return ok
}

// Take takes n units if they are available now. Otherwise it takes nothing, and returns the wait until they are
// available if no other caller takes any. The wait is bucket.Never if they never will be. A cost of 0 is always met.
// A negative cost, or one above the burst, is never met.
func (m *Limiter) Take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	if s := m.bucket.instead(); s != nil {
		return s.take(now, n)
	}
	return m.bucket.take(now, n)
}

// takeSince is Try with a turn, for a call that has been entitled to go since an instant: the burst counts from then
// on.
func (m *Limiter) takeSince(now, since time.Duration, n int64, core *core) (Turn, bool) {
	return m.bucket.trySince(now, since, n, core)
}

// Ask returns the wait until n units are available if no caller takes any: 0 if they are available now, bucket.Never
// if they never will be. It takes nothing and reserves nothing.
func (m *Limiter) Ask(now time.Duration, n int64) time.Duration {
	if s := m.bucket.instead(); s != nil {
		return s.ask(now, n)
	}
	return m.bucket.ask(now, n) // called directly: every decision with several limits asks each
}

// After returns a lower bound of the wait until n units are available if calls that cost ahead units go first. It
// takes nothing. The bound is exact for buckets, and for calls of one unit. It is bucket.Never for a cost that can
// never be met, and 0 if the units are available now. With it a queue immediately refuses calls whose turn cannot
// come in time.
func (m *Limiter) After(now time.Duration, ahead, n int64) time.Duration {
	if ahead <= 0 {
		return m.Ask(now, n)
	}
	return m.shape().then(now, ahead, n)
}

// Room reports whether c units are available at an instant if n are taken now. A queue asks it before a call
// overtakes another for which it reserves units. It takes nothing. It returns true for costs that can never be met,
// because nothing need be reserved for those.
func (m *Limiter) Room(now time.Duration, n int64, at time.Duration, c int64) bool {
	return m.shape().room(now, n, at, c)
}

// Back returns n units of a turn, or all if n is the turn's cost or more (bucket.All). They first pay debts, and then
// are available to the next call. Units beyond the burst are lost, as in a full bucket. Units of a calendar limit
// return only to the window from which they were taken. A turn must not be returned twice. Waiting calls are not
// woken: the caller must wake their queue.
func (m *Limiter) Back(now time.Duration, t Turn, n int64) { m.shape().back(now, t, n) }

// Owe charges n units beyond what was taken. These units are already used, so the limiter cannot refuse them. Later
// calls wait until the debt is paid. Returned units pay it first. Only Owe charges units that are not available
// yet. A bucket owes at most 16 bursts. A debt of a rolling limit lasts for its window, of a calendar limit until the
// window ends. A number below 1 does nothing.
func (m *Limiter) Owe(now time.Duration, n int64) { m.shape().owe(now, n) }

// Pause stops all callers of the limiter until the instant. It never shortens a pause.
func (m *Limiter) Pause(now, until time.Duration) { m.shape().pause(now, until) }

// Resume ends a pause early. A bucket does not refill during a pause. Waiting calls are not woken: the caller must
// wake their queue.
func (m *Limiter) Resume(now time.Duration) { m.shape().lift(now) }

// Look returns the state of the limiter and takes nothing. During concurrent calls, Left may be slightly out of date.
func (m *Limiter) Look(now time.Duration) Level { return m.shape().look(now) }
