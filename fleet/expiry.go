package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An expiry is the instant before which a grant must be used. A process that is frozen together with its
// monotonic clock can measure its absence only by the wall clock.
type expiry struct {
	at   time.Duration
	wall int64 // unix nanoseconds; 0 unless the process may be frozen
}

// noExpiry is the expiry of units that can be used at any time.
var noExpiry = expiry{at: bucket.Never}

// passed reports whether the expiry is over by either clock.
func (e expiry) passed(now time.Duration, c clock.Clock) bool {
	return now >= e.at || e.wall != 0 && c.Wall(now).UnixNano() >= e.wall
}

// first returns the earlier of two expiries, by each clock.
func (e expiry) first(o expiry) expiry {
	e.at = min(e.at, o.at)
	if e.wall == 0 || o.wall != 0 && o.wall < e.wall {
		e.wall = o.wall
	}
	return e
}

// A sending is the instant at which a request was sent, by both clocks.
type sending struct {
	at   time.Duration
	wall int64 // unix nanoseconds; 0 unless the process may be frozen
}

// sending returns the sending of a request that is sent now.
func (f *Fleet) sending(now time.Duration) sending {
	s := sending{at: now}
	if f.o.Freezes {
		s.wall = f.clock.Wall(now).UnixNano()
	}
	return s
}

// expiry returns the expiry at d after the sending.
func (s sending) expiry(d time.Duration) expiry {
	e := expiry{at: s.at + d}
	if s.wall != 0 {
		e.wall = s.wall + int64(d)
	}
	return e
}

// after returns the sending moved by d, by a clock that may run slightly fast.
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

// later returns at+d, or Never if that is too large.
func later(at, d time.Duration) time.Duration {
	if d > bucket.Never-at {
		return bucket.Never
	}
	return at + d
}
