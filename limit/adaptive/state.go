package adaptive

import (
	"math"
	"time"
)

// A State is a rate and what it remembers. Get the first one from Config.Begin; the
// Config given to its methods must have its defaults filled in.
type State struct {
	Rate float64 // units per second

	peak  float64       // the rate that the last cut was made from; 0 if there was none
	cutAt time.Duration // the last cut
	cut   bool          // there was one
	curve time.Duration // where cubic's curve began: the last cut, and later by all time in which nothing was learnt
	grew  time.Duration // the last step of growth, or the last interval that forbade one
}

// Begin is the state before anything is known.
func (c Config) Begin(now time.Duration) State { return State{Rate: c.Start, grew: now} }

// Throttled is s after a throttle, as of now, of an attempt that was sent at
// sent. used is the rate of successes lately: a rate that nobody used cannot
// have been too high, so it is cut from what was used if that is lower, though
// not below a half of the rate, because a single quiet moment proves little.
//
// Attempts sent before the last cut say nothing of the rate since, and are
// ignored; so is all that comes within the cut interval, as one overshoot
// throttles many attempts at once.
func (s State) Throttled(c Config, now, sent time.Duration, used float64, trip time.Duration) (State, bool) {
	if c.Rule == MultiplyEach {
		return s.times(c, c.Cut)
	}
	s.grew = now // what throttles is not grown in the same interval
	if s.cut && (sent < s.cutAt || now-s.cutAt < max(c.CutInterval, 2*trip)) {
		return s, false
	}
	from := max(min(s.Rate, used), s.Rate/2)
	if c.Unknown && !s.cut {
		from = min(s.Rate, max(used, c.Min)) // nothing was known before: not even a half of the rate
	}
	s.peak, s.cutAt, s.curve, s.cut = from, now, now, true
	s.Rate = max(c.Min, from*c.Cut)
	return s, true
}

// times is s with its rate multiplied, between the least and the most.
func (s State) times(c Config, factor float64) (State, bool) {
	before := s.Rate
	s.Rate = max(c.Min, min(c.Max, before*factor))
	return s, s.Rate != before
}

// Due reports whether it is time to look whether the rate may grow: for
// MultiplyEach always.
func (s State) Due(c Config, now time.Duration) bool {
	return c.Rule == MultiplyEach || now-s.grew >= c.Interval
}

// Grown is s after an interval in which there were successes at the rate used
// and no throttle. It grows only if enough of the rate was used: an idle caller
// learns nothing, and would drift up to the ceiling.
func (s State) Grown(c Config, now time.Duration, used float64) (State, bool) {
	if c.Rule == MultiplyEach {
		return s.times(c, c.Grow)
	}
	if c.Unknown && now-s.grew-s.few(4) > forgets*c.Recovery {
		return s.forget(c, now)
	}
	since := now - s.grew
	s.curve += max(0, since-c.Interval-s.few(4))
	s.grew = now
	if used < c.UsedShare*s.Rate || s.Rate >= c.Max {
		return s, false
	}
	if next := min(c.Max, s.next(c, now, since)); next > s.Rate {
		s.Rate = next
		return s, true
	}
	return s, false
}

// forgets is the number of recovery times after which what was learned of an unknown limit is old.
const forgets = 10

// forget is s after a long time without use: the limit may have changed meanwhile. It is as after a throttle, so the
// rate is soon back if the limit has not changed.
func (s State) forget(c Config, now time.Duration) (State, bool) {
	if s.cut {
		s.peak, s.curve = s.Rate, now
	}
	s.grew, s.Rate = now, max(c.Min, min(c.Start, s.Rate), s.Rate*c.Cut)
	return s, true
}

// few is the time in which the rate lets n units go.
func (s State) few(n float64) time.Duration {
	return time.Duration(n / s.Rate * float64(time.Second))
}

// slowStart is cubic's growth per interval before the first cut: nothing is known of what the upstream bears, and the
// rate must come from a cautious start to what is used within seconds. It grows only while at least UsedShare of it is used.
// Of an unknown limit it doubles each second, or each call if they are rarer: the first throttle comes at less than twice the limit.
func (c Config) slowStart(since time.Duration) float64 {
	if c.Unknown {
		return math.Exp2(min(1, since.Seconds()))
	}
	return 1.5
}

func (s State) next(c Config, now, since time.Duration) float64 {
	switch {
	case c.Rule == Add:
		return s.Rate + c.Step*c.Max
	case c.Rule == Cubic && s.cut:
		return s.cubic(c, now)
	case c.Rule == Cubic:
		return s.Rate * c.slowStart(since)
	}
	return s.Rate * c.Grow
}

// cubic is peak * (1 + (1-cut) * (t/recovery - 1)^3): the cut rate at once after
// the cut, the peak after the recovery time, flat around it and steep beyond. Its
// time stands still while nothing is learnt: after an outage the rate goes on
// from where it was.
func (s State) cubic(c Config, now time.Duration) float64 {
	x := float64(now-s.curve)/float64(c.Recovery) - 1
	return s.peak * (1 + (1-c.Cut)*x*x*x)
}
