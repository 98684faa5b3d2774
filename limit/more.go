package limit

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// more is what most limiters never have. It stands apart so that an idle key is
// small, and so that the path of a decision looks at one pointer for all of it.
type more struct {
	returned   atomic.Pointer[bucket.Returned]     // places that came back
	owed       atomic.Pointer[bucket.Returned]     // places that stand for what was used beyond its reservation
	blocks     atomic.Pointer[blocks]              // nil until two cores met
	rate       atomic.Pointer[adaptive.Controller] // nil until something was learnt
	advertised atomic.Pointer[advertised]          // nil unless the upstream says what it allows
	shape      shaped                              // instead of all else, for limits that are no bucket of this process
}

// grow makes more.
func (m *Limiter) grow() *more {
	x := m.more.Load()
	if x == nil {
		x = new(more)
		if !m.more.CompareAndSwap(nil, x) {
			x = m.more.Load()
		}
	}
	return x
}

// returned is what came back and is not at the end of what was given away; nil for nothing.
func (m *Limiter) returned() *bucket.Returned {
	if x := m.more.Load(); x != nil {
		return x.returned.Load()
	}
	return nil
}

// blocks is what cores hold of what was given away; nil until two of them met.
func (m *Limiter) blocks() *blocks {
	if x := m.more.Load(); x != nil {
		return x.blocks.Load()
	}
	return nil
}

// learner is the rate that learns; nil until an outcome was reported.
func (m *Limiter) learner() *adaptive.Controller {
	if x := m.more.Load(); x != nil {
		return x.rate.Load()
	}
	return nil
}

// shaped is nil for a bucket of this process.
func (m *Limiter) shaped() shaped {
	if x := m.more.Load(); x != nil {
		return x.shape
	}
	return nil
}

// A shaped is a limiter that is no bucket of this process: one that is rolling, that counts
// by the calendar, or whose units are kept elsewhere. Its methods are those of Limiter. take
// and ask of one that is gone say no; whoever holds it looks the key up again. close takes it
// out of use whatever it holds, and says what stands in its place. clone, set and empty are for
// those that nobody uses yet, or under the lock of the registry.
type shaped interface {
	take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool)
	ask(now time.Duration, n int64) time.Duration
	then(now time.Duration, ahead, n int64) time.Duration
	room(now time.Duration, n int64, at time.Duration, c int64) bool
	owe(now time.Duration, n int64)
	back(now time.Duration, t Turn, n int64)
	pause(now, until time.Duration)
	lift(now time.Duration)
	look(now time.Duration) Level
	set(now time.Duration, l *Limit) bool
	untouched(now time.Duration) bool
	retire(now time.Duration) bool
	retired() bool
	close(now time.Duration) (heir *Limiter, owed int64)
	clone() shaped
	empty(now time.Duration)
}
