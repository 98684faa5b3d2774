package adaptive

import (
	"math"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A Controller maintains a State in a process. It is safe for concurrent use. A success before the next growth step
// is due costs one uncontended count and no lock. With MultiplyEach every success below Max is a growth step.
type Controller struct {
	c     Config
	state atomic.Pointer[State]
	due   atomic.Int64 // the instant of the next step
	last  atomic.Int64 // the instant of a recent success
	since atomic.Int64 // since when successes have come without a gap
	used  *counter.Window
	trips trips
}

// look is the time over which the used rate is measured.
const look = time.Second

// leastExpected is the number of units that a rate allows in the time of look below which the used rate proves nothing.
const leastExpected = 0.5

// NewController returns a controller for a limit of this rate. The config must be valid.
func NewController(now time.Duration, c Config, limit float64) *Controller {
	c = c.WithDefaults(limit)
	k := &Controller{c: c, used: counter.NewWindow(look, 8)}
	s := c.Begin(now)
	k.state.Store(&s)
	k.due.Store(int64(now + c.Interval))
	k.since.Store(int64(now))
	return k
}

// Rate returns the current rate.
func (k *Controller) Rate() float64 { return k.state.Load().Rate }

// Cut returns the rate before the last cut, and how long ago it was; 0 if there was none.
func (k *Controller) Cut(now time.Duration) (from float64, ago time.Duration) {
	s := k.state.Load()
	if !s.cut {
		return 0, 0
	}
	return s.peak, now - s.cutAt
}

// Report records the outcome of an attempt of n units that was sent at sent. If the rate changed, it returns the new
// one.
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
		put := next // a separate variable, so that a report without a change allocates nothing
		if k.state.CompareAndSwap(old, &put) {
			k.due.Store(int64(next.grew + k.c.Interval))
			return next.Rate, changed
		}
	}
}

func (k *Controller) usedRate(now time.Duration) float64 {
	return float64(k.used.Covering(now, look)) / look.Seconds()
}

// flows records that successes come, and since when without a gap. Writing both words at each success would cost too
// much.
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

// steadyRate returns the used rate if successes came without a gap while it was measured. Otherwise it returns
// infinity: a rate that was unused because nothing was sent, as with an open breaker, has not proven too high. It also
// returns infinity for a rate below leastExpected. Otherwise each throttle would cut such a rate to a quarter, and an
// unlucky process would starve.
func (k *Controller) steadyRate(now time.Duration) float64 {
	if now-time.Duration(k.since.Load()) < look || k.Rate()*look.Seconds() < leastExpected {
		return math.Inf(1)
	}
	return k.usedRate(now)
}
