package bucket

import (
	"math"
	"math/bits"
	"time"
)

// A Line is the timetable of a limit: which place of the axis is there at which
// instant. It is a value and never changes; a pause or another rate is another
// Line that goes on from the same place, so that every place already given away
// keeps its worth and nothing is handed out or lost.
//
// One unit takes up Unit places, about as many as it takes nanoseconds at the
// full rate. speed is places per nanosecond with 32 binary digits of fraction.
type Line struct {
	from   time.Duration // the line starts here; until then it stands still at place
	place  int64
	speed  uint64
	full   uint64 // the speed at the configured rate
	unit   int64
	depth  int64         // places in a full burst
	most   int64         // units in a full burst
	floor  int64         // a burst that was smaller has passed this place, and a larger one does not bring it back
	paused bool          // from is the end of a pause: nothing goes before it
	stood  time.Duration // when that pause began
}

// Never is the instant of what does not come.
const Never = time.Duration(math.MaxInt64)

// End is a place that no line reaches: the axis is used up before it, after 146
// years at a place per nanosecond and 2.3 at the fastest rate there can be. Then
// nothing goes any more.
const End = math.MaxInt64 / 2

const one = 1 << 32 // a speed of one place per nanosecond

// NewLine starts a timetable at place 0. The rate must be valid.
func NewLine(now time.Duration, r Rate) Line {
	unit := r.interval()
	l := Line{from: now, unit: unit, depth: unit * r.Full(), most: r.Full(), floor: -unit * r.Full()}
	l.full = speedOf(unit, r)
	l.speed = l.full
	return l
}

// speedOf is unit places per interval of r, rounded down.
func speedOf(unit int64, r Rate) uint64 {
	hi, lo := bits.Mul64(uint64(unit), uint64(r.Amount))
	if hi>>32 > 0 {
		return math.MaxUint64
	}
	hi, lo = hi<<32|lo>>32, lo<<32
	if hi >= uint64(r.Per) {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Per))
	return max(q, 1)
}

// At is the last place that is there at the instant.
func (l *Line) At(now time.Duration) int64 {
	if now <= l.from {
		return l.place
	}
	hi, lo := bits.Mul64(uint64(now-l.from), l.speed)
	if hi>>30 > 0 {
		return End - 1
	}
	return min(l.place+int64(hi<<32|lo>>32), End-1)
}

// When is the first instant at which the place is there, rounded up.
func (l *Line) When(place int64) time.Duration {
	if place <= l.place {
		return l.from
	}
	if place >= End {
		return Never
	}
	d := uint64(place - l.place)
	hi, lo := d>>32, d<<32
	if hi >= l.speed {
		return Never
	}
	q, rest := bits.Div64(hi, lo, l.speed)
	if rest > 0 {
		q++
	}
	if q > uint64(Never-l.from) {
		return Never
	}
	return l.from + time.Duration(q)
}

// Wait is how long from now until the place may be used, 0 if it may be.
func (l *Line) Wait(now time.Duration, place int64) time.Duration {
	if !l.Paused(now) && l.At(now) >= place {
		return 0
	}
	return l.Until(now, place)
}

// Until is Wait for a place that may not be used yet.
func (l *Line) Until(now time.Duration, place int64) time.Duration {
	when := l.When(place)
	if when == Never {
		return Never
	}
	return max(0, when-now)
}

// Cost is the places that n units take up. n must be within the burst.
func (l *Line) Cost(n int64) int64 { return n * l.unit }

// Full is the burst in units; a cost above it can never be met.
func (l *Line) Full() int64 { return l.most }

// Unit is the places of one unit, and Depth those of a full burst.
func (l *Line) Unit() int64  { return l.unit }
func (l *Line) Depth() int64 { return l.depth }

// Low is where the burst begins when the line has reached at: places up to it are
// gone.
func (l *Line) Low(at int64) int64 { return max(at-l.depth, l.floor) }

// FullAt is the place that must be there for a full burst to be left, if nothing
// is booked behind booked.
func (l *Line) FullAt(booked int64) int64 { return max(booked, l.floor) + l.depth }

// Paused reports whether nothing may go at the instant, whatever is there.
func (l *Line) Paused(now time.Duration) bool { return l.paused && now < l.from }

// PausedUntil is the end of the pause, if there is one at the instant.
func (l *Line) PausedUntil(now time.Duration) (time.Duration, bool) { return l.from, l.Paused(now) }

// PerSecond is the rate at which the line now runs.
func (l *Line) PerSecond() float64 {
	return float64(l.speed) / one * float64(time.Second) / float64(l.unit)
}

// Pause stops the line until the instant. A pause is never made shorter.
func (l *Line) Pause(now, until time.Duration) Line {
	next := *l
	if until <= now || l.Paused(now) && until <= l.from {
		return next
	}
	// A caller whose clock reading is older than the line must not set it back.
	if !l.Paused(now) {
		next.stood = max(now, l.from)
	}
	next.place, next.from, next.paused = l.At(now), max(until, l.from), true
	return next
}

// Resume ends a pause before its time: the line goes on from where it stood. Nothing
// comes for the time in which it stood still, nor twice for a caller whose clock
// reading is older than the pause.
func (l *Line) Resume(now time.Duration) Line {
	next := *l
	if l.Paused(now) {
		next.from, next.paused = min(max(now, l.stood), l.from), false
	}
	return next
}

// Shut is the line for a limiter that is out of use: nobody is given anything.
func (l *Line) Shut() Line {
	next := *l
	next.most = 0
	return next
}

// Pace lets the line run at another rate, at most the configured one. It is how
// a rate that learns is applied. The slowest that a line runs is a place in four seconds.
func (l *Line) Pace(now time.Duration, perSecond float64) Line {
	next := l.onward(now)
	next.speed = max(1, min(paceOf(l.unit, perSecond), l.full))
	return next
}

// paceOf is unit places per interval of a rate, rounded down. The product of floating point
// is rounded up where it comes out even, so that a line at a half of its rate would be a place
// ahead after half a year.
func paceOf(unit int64, perSecond float64) uint64 {
	if !(perSecond > 0) { // NaN too
		return 0
	}
	frac, exp := math.Frexp(min(perSecond, math.MaxFloat64))
	hi, lo := bits.Mul64(uint64(frac*(1<<53)), uint64(unit)) // of 2^(53-exp) seconds, and exact
	if up := exp - 53 + 32; up >= 0 {
		if up > 63 || hi>>(64-up) > 0 {
			return math.MaxUint64
		}
		hi, lo = hi<<up|lo>>(64-up), lo<<up
	} else {
		down := uint(-up)
		hi, lo = hi>>down, hi<<(64-down)|hi>>(down-64)|lo>>down
	}
	if hi >= uint64(time.Second) {
		return math.MaxUint64
	}
	q, _ := bits.Div64(hi, lo, uint64(time.Second))
	return q
}

// Change gives the line another rate and burst. What is spoken for stays spoken
// for, unit by unit. It reports false if the new rate lies so far from the one
// that the line was made for (64 times faster, 65,536 times slower) that its
// axis cannot hold it; then a new line must be made. On a line made slower, time
// is as coarse as one place, 65 microseconds at most: what goes may go by so much
// too early.
func (l *Line) Change(now time.Duration, r Rate) (Line, bool) {
	full := speedOf(l.unit, r)
	hi, depth := bits.Mul64(uint64(l.unit), uint64(r.Full()))
	if full > 64*one || full < one>>16 || hi > 0 || depth > uint64(longest) {
		return *l, false
	}
	next := l.onward(now)
	next.floor = l.Low(next.place)
	next.full, next.speed, next.depth, next.most = full, full, int64(depth), r.Full()
	return next, true
}

// onward is the line as it goes on from now, or from the end of its pause.
func (l *Line) onward(now time.Duration) Line {
	next := *l
	if now > l.from {
		next.place, next.from, next.paused = l.At(now), now, false
	}
	return next
}
