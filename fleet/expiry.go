package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An expiry is before when something that a store has granted must be used. A process
// that is frozen together with its monotonic clock learns only from the wall how long it
// has been away.
type expiry struct {
	at   time.Duration
	wall int64 // unix nanoseconds; 0 unless the process may be frozen
}

// noExpiry is that of what may be used at any time.
var noExpiry = expiry{at: bucket.Never}

// passed reports whether it is too late by either clock.
func (e expiry) passed(now time.Duration, c clock.Clock) bool {
	return now >= e.at || e.wall != 0 && c.Wall(now).UnixNano() >= e.wall
}

// first is the earlier of two by either clock.
func (e expiry) first(o expiry) expiry {
	e.at = min(e.at, o.at)
	if e.wall == 0 || o.wall != 0 && o.wall < e.wall {
		e.wall = o.wall
	}
	return e
}

// A sending is the instant at which a store was asked, by both clocks.
type sending struct {
	at   time.Duration
	wall int64 // unix nanoseconds; 0 unless the process may be frozen
}

// sending is the present as the instant at which a store is asked.
func (f *Fleet) sending(now time.Duration) sending {
	s := sending{at: now}
	if f.o.Freezes {
		s.wall = f.clock.Wall(now).UnixNano()
	}
	return s
}

// expiry is so long after it.
func (s sending) expiry(d time.Duration) expiry {
	e := expiry{at: s.at + d}
	if s.wall != 0 {
		e.wall = s.wall + int64(d)
	}
	return e
}

// after is the sending as if it was so much later, by a clock that may run a little faster.
func (s sending) after(d time.Duration) sending {
	if d <= slack(d) {
		return s
	}
	d -= slack(d)
	s.at += d
	if s.wall != 0 {
		s.wall += int64(d)
	}
	return s
}

// later is at+d, or Never if there is no such instant.
func later(at, d time.Duration) time.Duration {
	if d > bucket.Never-at {
		return bucket.Never
	}
	return at + d
}
