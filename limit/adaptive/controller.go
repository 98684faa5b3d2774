package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A Controller is the home of a State in a process. It is safe for concurrent
// use; a success that comes before the next step of growth is due costs one
// uncontended count and no lock. With MultiplyEach every success below the most is
// such a step.
type Controller struct {
	c     Config
	state atomic.Pointer[State]
	due   atomic.Int64 // the instant of the next step
	last  atomic.Int64 // the instant of a recent success
	since atomic.Int64 // when successes began to come without a gap
	used  *counter.Window
	trips trips
}

// look is how far back the used rate is measured.
const look = time.Second

// NewController makes a controller for a limit of the rate. The config must be
// valid.
func NewController(now time.Duration, c Config, limit float64) *Controller {
	c = c.WithDefaults(limit)
	k := &Controller{c: c, used: counter.NewWindow(look, 8)}
	s := c.Begin(now)
	k.state.Store(&s)
	k.due.Store(int64(now + c.Interval))
	k.since.Store(int64(now))
	return k
}

// Rate is the rate in force.
func (k *Controller) Rate() float64 { return k.state.Load().Rate }

// Cut is the rate that a throttle lowered last, and how long ago; 0 if none did.
func (k *Controller) Cut(now time.Duration) (from float64, ago time.Duration) {
	s := k.state.Load()
	if !s.cut {
		return 0, 0
	}
	return s.peak, now - s.cutAt
}

// Report tells the controller how an attempt of n units ended that was sent at
// sent, and says which rate is in force from now on, if that changed.
func (k *Controller) Report(now, sent time.Duration, class outcome.Class, n int64) (rate float64, changed bool) {
	switch class {
	case outcome.OK:
		k.used.Add(now, n)
		k.flows(now)
		k.trips.note(now, now-sent)
		if k.c.Rule != MultiplyEach && int64(now) < k.due.Load() {
			return 0, false
		}
		return k.grow(now)
	case outcome.Throttled:
		return k.cut(now, sent)
	}
	return 0, false
}

func (k *Controller) cut(now, sent time.Duration) (float64, bool) {
	used, trip := k.steadyRate(now), k.trips.p99()
	if k.c.Unknown && !k.state.Load().cut {
		used = max(k.usedRate(now), 1/look.Seconds())
	}
	return k.change(now, func(s State) (State, bool) { return s.Throttled(k.c, now, sent, used, trip) })
}

func (k *Controller) grow(now time.Duration) (float64, bool) {
	used := k.usedRate(now)
	return k.change(now, func(s State) (State, bool) {
		if !s.Due(k.c, now) {
			return s, false
		}
		return s.Grown(k.c, now, used)
	})
}

func (k *Controller) change(now time.Duration, f func(State) (State, bool)) (float64, bool) {
	for {
		old := k.state.Load()
		next, changed := f(*old)
		if next == *old {
			return next.Rate, false
		}
		put := next // made here, so that what changes nothing costs no memory
		if k.state.CompareAndSwap(old, &put) {
			k.due.Store(int64(next.grew + k.c.Interval))
			return next.Rate, changed
		}
	}
}

func (k *Controller) usedRate(now time.Duration) float64 {
	return float64(k.used.Covering(now, look)) / look.Seconds()
}

// flows notes that successes come, and since when without a gap. To write both
// words at each of them would cost more than they are worth.
func (k *Controller) flows(now time.Duration) {
	last := time.Duration(k.last.Load())
	gap := look/4 + time.Duration(4*float64(time.Second)/k.Rate())
	if now-last > gap {
		k.since.Store(int64(now))
	}
	if now-last > look/32 {
		k.last.Store(int64(now))
	}
}

// steadyRate is the used rate if it was measured without a gap in it, and
// otherwise no bound: a rate that was not used because nothing was sent, as when
// a breaker was open, has not been proven to be too high.
func (k *Controller) steadyRate(now time.Duration) float64 {
	if now-time.Duration(k.since.Load()) < look {
		return math.Inf(1)
	}
	return k.usedRate(now)
}
