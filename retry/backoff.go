package retry

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Delay returns the delay after the failure of attempt number attempt, counted from 1, with this class. prev is the delay before
// that attempt, 0 if there was none. Only DecorrelatedJitter uses it. Random numbers come from r, or from the process's generator
// if r is nil.
//
// The result is never negative. It is at most Cap, except that RangeJitter reaches Cap*High and AddedJitter Cap+Added.
func (c Config) Delay(attempt int, prev time.Duration, class outcome.Class, r *rand.Rand) time.Duration {
	return c.delay(attempt, prev, class, r)
}

// delay is Delay without copying c, which would be most of its cost.
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

// base returns the ceiling of the delay before the second attempt. It doubles with each further attempt.
func (c *Config) base(class outcome.Class) time.Duration {
	if class == outcome.Throttled && c.ThrottleBase > 0 {
		return c.ThrottleBase
	}
	return positive(c.Base, defaultBase)
}

// ceiling returns base * 2^(attempt-1), or top if that is less. It compares with top shifted down, because base shifted up would
// overflow.
func ceiling(base, top time.Duration, attempt int) time.Duration {
	doublings := uint(max(attempt, 1) - 1)
	if base > top>>doublings {
		return top
	}
	return base << doublings
}

// decorrelated implements the algorithm of the AWS Architecture blog with one change. The blog cuts the sample to the cap after
// it is drawn, so that two callers in three get the same delay once they reach the cap. In the blog's model, this variant makes
// as many calls and ends a tenth earlier. See TestJitterTable.
func decorrelated(r *rand.Rand, base, top, prev time.Duration) time.Duration {
	prev = max(prev, base)
	if prev < top/3 {
		top = 3 * prev
	}
	return base + draw(r, top-base)
}

// scaled returns d times a random factor between low and high.
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

// draw returns a random duration from 0 to n, inclusive. The product deviates from a uniform distribution by less than n parts in
// 2^64, which does not matter for retries. It uses exactly one random number, so that a run with a seed is reproducible.
func draw(r *rand.Rand, n time.Duration) time.Duration {
	hi, _ := bits.Mul64(random(r), uint64(n)+1)
	return time.Duration(hi)
}

func unit(r *rand.Rand) float64 { return float64(random(r)>>11) / (1 << 53) }

// random uses r, for reproducible runs, or the process's generator if r is nil.
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

// plus adds without overflow. Neither operand may be negative.
func plus(a, b time.Duration) time.Duration {
	if a > forever-b {
		return forever
	}
	return a + b
}
