package retry

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Delay is how long to wait after attempt number attempt, counted from 1, has
// failed with the class. prev is the delay before that attempt, 0 if there was
// none; only DecorrelatedJitter asks. Chance comes from r, or from the
// generator of the process if r is nil.
//
// It is never negative, and never above Cap, except that RangeJitter reaches
// Cap*High and AddedJitter Cap+Added.
func (c Config) Delay(attempt int, prev time.Duration, class outcome.Class, r *rand.Rand) time.Duration {
	return c.delay(attempt, prev, class, r)
}

// delay is Delay without a copy of c, which is most of its cost.
func (c *Config) delay(attempt int, prev time.Duration, class outcome.Class, r *rand.Rand) time.Duration {
	top := positive(c.Cap, defaultCap)
	base := c.base(class)
	ceiling := ceiling(base, top, attempt)
	switch c.Jitter {
	case NoJitter:
		return ceiling
	case EqualJitter:
		half := ceiling / 2
		return half + draw(r, ceiling-half)
	case DecorrelatedJitter:
		return decorrelated(r, min(base, top), top, prev)
	case RangeJitter:
		return scaled(r, ceiling, c.Low, c.High)
	case AddedJitter:
		return plus(ceiling, draw(r, positive(c.Added, defaultAdded)))
	default:
		return draw(r, ceiling)
	}
}

// base is the ceiling of the wait before the second attempt, which doubles with each.
func (c *Config) base(class outcome.Class) time.Duration {
	if class == outcome.Throttled && c.ThrottleBase > 0 {
		return c.ThrottleBase
	}
	return positive(c.Base, defaultBase)
}

// ceiling is base * 2^(attempt-1), or top if that is less. The comparison goes
// by top, shifted down, because base shifted up would overflow.
func ceiling(base, top time.Duration, attempt int) time.Duration {
	doublings := uint(max(attempt, 1) - 1)
	if base > top>>doublings {
		return top
	}
	return base << doublings
}

// decorrelated is the walk of the AWS Architecture blog, with one change: there
// the sample is cut to the cap after it is drawn, which lands two callers in
// three on the very same delay once they are at the cap. In the model of the
// blog this one makes as many calls and is done a tenth sooner; see
// TestJitterTable.
func decorrelated(r *rand.Rand, base, top, prev time.Duration) time.Duration {
	prev = max(prev, base)
	if prev < top/3 {
		top = 3 * prev
	}
	return base + draw(r, top-base)
}

// scaled is d times a factor between low and high.
func scaled(r *rand.Rand, d time.Duration, low, high float64) time.Duration {
	if !(low > 0) {
		low = defaultLow
	}
	if !(high > 0) {
		high = defaultHigh
	}
	f := float64(d) * (low + (high-low)*unit(r))
	if !(f < float64(forever)) {
		return forever
	}
	return time.Duration(max(f, 0))
}

// draw is a duration from 0 to n, both included. The product is off from a
// uniform choice by less than n parts in 2^64, which no retry can notice, and
// spends exactly one number, so that a run with a seed repeats.
func draw(r *rand.Rand, n time.Duration) time.Duration {
	hi, _ := bits.Mul64(random(r), uint64(n)+1)
	return time.Duration(hi)
}

// unit is a number from 0 up to 1.
func unit(r *rand.Rand) float64 { return float64(random(r)>>11) / (1 << 53) }

// random goes by r, for runs that must repeat; nil is chance.
func random(r *rand.Rand) uint64 {
	if r == nil {
		return rand.Uint64()
	}
	return r.Uint64()
}

const forever time.Duration = math.MaxInt64

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// plus adds without running over; neither may be negative.
func plus(a, b time.Duration) time.Duration {
	if a > forever-b {
		return forever
	}
	return a + b
}
