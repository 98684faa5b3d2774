package limit

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Limiter holds all callers of one key to one limit: it says whether so many units can
// go now, and if not, when they could. It makes nobody wait and books nothing for later;
// calls wait in a line (package line), which asks again. It is safe for concurrent use and
// allocates nothing on the way to a yes or a no; of a bucket it takes no lock for that.
//
// What it does depends on its shape. Nearly every limiter is a bucket of this process, which has its
// place in the limiter itself.
type Limiter struct{ bucket places }

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
		m = shapedAs(newRolling(l.window()))
	case Calendar:
		m = shapedAs(newByCalendar(l.Amount, a))
	}
	m.bucket.line.Store(line)
	m.bucket.booked.Store(lowest)
	return m
}

// shapedAs is a limiter that is no bucket of this process.
func shapedAs(s shape) *Limiter {
	m := &Limiter{}
	m.bucket.grow().instead = s
	return m
}

// twin is another limiter that stands where this one stands, which nobody uses.
func twin(m *Limiter) *Limiter {
	t := &Limiter{}
	m.shape().copyTo(t)
	return t
}

// shape is what answers for the limiter.
func (m *Limiter) shape() shape {
	if s := m.bucket.instead(); s != nil {
		return s
	}
	return &m.bucket
}

// Try takes n units if they are there now, and reports whether it did. What it takes cannot be given
// back: see Take for that.
func (m *Limiter) Try(now time.Duration, n int64) bool {
	_, ok := m.bucket.try(now, n, new(core))
	return ok
}

// Take takes n units if they are there now. If they are not it takes nothing, and says how
// long it takes until they are if nobody else takes any; bucket.Never if they never will be.
// A cost of 0 is always met, one below 0 or above the burst never.
func (m *Limiter) Take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool) {
	if s := m.bucket.instead(); s != nil {
		return s.take(now, n)
	}
	return m.bucket.take(now, n)
}

// takeSince is Try, with a turn, for who could have gone since an instant: the burst is counted from then on.
func (m *Limiter) takeSince(now, since time.Duration, n int64, core *core) (Turn, bool) {
	return m.bucket.trySince(now, since, n, core)
}

// Ask is how long it takes until n units are there if nobody takes any: 0 if they are there now,
// bucket.Never if they never will be. It takes nothing, and promises nothing: others may take them.
func (m *Limiter) Ask(now time.Duration, n int64) time.Duration {
	if s := m.bucket.instead(); s != nil {
		return s.ask(now, n)
	}
	return m.bucket.ask(now, n) // by its name: every decision with several limits asks each
}

// After is how long it takes at least until n units can go, if so many others (ahead, in units) go
// before them. It takes nothing. Of buckets, and of calls that cost one unit each, it takes just so
// long. It is bucket.Never for a cost that can never be met, and 0 for one that can go at once. A line
// refuses with it, at once, a call whose turn cannot come in time.
func (m *Limiter) After(now time.Duration, ahead, n int64) time.Duration {
	if ahead <= 0 {
		return m.Ask(now, n)
	}
	return m.shape().then(now, ahead, n)
}

// Room reports whether c units can go at an instant if n go now. A line asks it before it lets a call
// go past one for which it keeps something. It takes nothing, and is true for costs that can never
// be met: nothing need be kept for those.
func (m *Limiter) Room(now time.Duration, n int64, at time.Duration, c int64) bool {
	return m.shape().room(now, n, at, c)
}

// Back gives n units of a turn back, all of them if n is the turn's whole cost
// or more (bucket.All). They pay for debts first, and then are there for whoever comes
// next. What the burst has passed meanwhile is gone, as it would be from a bucket that is
// full; of a calendar limit they count in the window from which they were taken and in no
// other. A turn must not be given back twice. Those who wait do not hear of it: their line
// has to be kicked.
func (m *Limiter) Back(now time.Duration, t Turn, n int64) { m.shape().back(now, t, n) }

// Owe charges n units beyond what was taken: they are used already, so nobody is
// asked, and those who come next wait until they are made up for. Places that came back
// pay for them first. This is the one thing that is given away before it is there. Of a bucket
// 16 bursts are owed at most; of a rolling limit a debt counts for as long as its window, of a
// calendar limit until the window ends. Below 1 it does nothing.
func (m *Limiter) Owe(now time.Duration, n int64) { m.shape().owe(now, n) }

// Pause stops everyone who takes from the limiter until the instant. It never shortens a
// pause.
func (m *Limiter) Pause(now, until time.Duration) { m.shape().pause(now, until) }

// Resume ends a pause before its time. Nothing has come of a bucket meanwhile. Those who
// wait do not hear of it: their line has to be kicked.
func (m *Limiter) Resume(now time.Duration) { m.shape().lift(now) }

// Look says what the limiter looks like, and takes nothing. It is of one instant but not of one
// moment: while others take, Left may be a little old.
func (m *Limiter) Look(now time.Duration) Level { return m.shape().look(now) }
