package adaptive

import (
	"math"
	"time"
)

// A State is a rate and its history. Config.Begin returns the first one. The Config passed to its methods must have
// its defaults filled in.
type State struct {
	Rate float64 // units per second

	peak  float64       // the rate before the last cut; 0 if there was none
	cutAt time.Duration // the last cut
	cut   bool          // there was a cut
	above float64       // the units that succeeded at the peak or above it since the last cut
	curve time.Duration // the origin of cubic's curve: the last cut, plus all time in which nothing was learned
	grew  time.Duration // the last growth step, or the last interval that prevented one
}

// Begin returns the state before anything is known.
func (c Config) Begin(now time.Duration) State { return State{Rate: c.Start, grew: now} }

// Throttled returns s after a throttle, as of now, of an attempt that was sent at sent. used is the recent rate of
// successes. A rate that was not used cannot have been too high, so the cut starts from used if that is lower. It
// starts from at least half of the rate, because a single quiet moment proves little.
//
// Throttles of attempts sent before the last cut are ignored, because they do not concern the present rate. Throttles
// within the cut interval are also ignored, because one overshoot throttles many attempts.
func (s State) Throttled(c Config, now, sent time.Duration, used float64, trip time.Duration) (State, bool) {
	if c.Rule == MultiplyEach {
		return s.times(c, c.Cut)
	}
	s.grew = now // a throttle prevents growth in the same interval
	if s.cut && (sent < s.cutAt || now-s.cutAt < max(c.CutInterval, 2*trip)) {
		return s, false
	}
	from := max(min(s.Rate, used), s.Rate/2)
	if c.Unknown && !s.cut {
		from = min(s.Rate, max(used, c.Min)) // nothing was known before, not even half of the rate
	}
	s.peak, s.cutAt, s.curve, s.cut, s.above = from, now, now, true, 0
	s.Rate = max(c.Min, from*c.Cut)
	return s, true
}

// times returns s with its rate multiplied, limited to Min and Max.
func (s State) times(c Config, factor float64) (State, bool) {
	before := s.Rate
	s.Rate = max(c.Min, min(c.Max, before*factor))
	return s, s.Rate != before
}

// Due reports whether it is time to check for growth; always true for MultiplyEach.
func (s State) Due(c Config, now time.Duration) bool {
	return c.Rule == MultiplyEach || now-s.grew >= c.Interval
}

// Grown returns s after an interval with successes at the rate used and no throttle. It grows only if enough of the
// rate was used. Otherwise the rate of an idle caller would drift to Max without any evidence.
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
	if s.cut && s.Rate >= s.peak {
		s.above += used * since.Seconds()
	}
	if next := min(c.Max, s.next(c, now, since)); next > s.Rate {
		s.Rate = next
		return s, true
	}
	return s, false
}

// forgets is the number of recovery times after which the learned rate of an unknown limit is outdated.
const forgets = 10

// forget returns s after a long time without use, in which the limit may have changed. It acts like a throttle, so
// the rate is soon back if the limit has not changed.
func (s State) forget(c Config, now time.Duration) (State, bool) {
	if s.cut {
		s.peak, s.curve, s.above = s.Rate, now, 0
	}
	s.grew, s.Rate = now, max(c.Min, min(c.Start, s.Rate), s.Rate*c.Cut)
	return s, true
}

// few returns the time in which the rate produces n units.
func (s State) few(n float64) time.Duration {
	return time.Duration(n / s.Rate * float64(time.Second))
}

// slowStart returns cubic's growth per interval before the first cut. Nothing is known about the upstream then, and
// the rate must rise from a cautious start to the demand within seconds. It grows only while at least UsedShare of it
// is used. For an unknown limit it doubles each second, or each call if calls are rarer, so the first throttle comes
// below twice the limit.
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
	case c.Rule == Cubic && s.cut && c.Unknown && s.above > max(provenUnits, provenTime.Seconds()*s.peak):
		return max(s.cubic(c, now), s.Rate*math.Exp2(min(1, since.Seconds()/probeDoubles.Seconds())))
	case c.Rule == Cubic && s.cut:
		return s.cubic(c, now)
	case c.Rule == Cubic:
		return s.Rate * c.slowStart(since)
	}
	return s.Rate * c.Grow
}

// An unknown limit is taken to have risen if enough units succeeded at the peak or above it: provenUnits, and at least as
// many as the peak allows in provenTime. The rate then doubles every probeDoubles until the next throttle, because cubic
// needs 30 s to reach five times the peak. Slow processes are usually many, take long for so many units, and follow cubic.
const (
	provenUnits  = 50
	provenTime   = 2 * time.Second
	probeDoubles = 2 * time.Second
)

// cubic returns peak * (1 + (1-cut) * (t/recovery - 1)^3): the cut rate immediately after the cut, the peak after the
// recovery time, flat around it and steep beyond. Its time stops while nothing is learned, so the rate after an
// outage continues from its last value.
func (s State) cubic(c Config, now time.Duration) float64 {
	x := float64(now-s.curve)/float64(c.Recovery) - 1
	return s.peak * (1 + (1-c.Cut)*x*x*x)
}
