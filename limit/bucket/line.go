package bucket

import (
	"math"
	"math/bits"
	"time"
)

// A Line is the timetable of a limit: it maps positions to the instants at which they are available. It is an
// immutable value. A pause or another rate makes another Line that continues from the same position. So positions
// that were granted keep their meaning, and no unit is granted twice or lost.
//
// One unit takes Unit positions, about its number of nanoseconds at the full rate. speed is positions per nanosecond
// with 32 fractional bits.
type Line struct {
	from   time.Duration // the line starts here; until then it stays at place
	place  int64
	speed  uint64
	full   uint64 // the speed at the configured rate
	unit   int64
	depth  int64         // positions in a full burst
	most   int64         // units in a full burst
	floor  int64         // a smaller burst has passed this position, and a larger one does not bring it back
	paused bool          // from is the end of a pause: nothing is granted before it
	stood  time.Duration // when that pause began
}

// Never is the instant of events that do not happen.
const Never = time.Duration(math.MaxInt64)

// End is a position that no line reaches: the line is used up before it, after 146 years at one position per
// nanosecond and 2.3 years at the fastest possible rate. Then nothing is granted any more.
const End = math.MaxInt64 / 2

const one = 1 << 32 // a speed of one position per nanosecond

// NewLine returns a timetable that starts at position 0. The rate must be valid.
func NewLine(now time.Duration, r Rate) Line {
	unit := r.interval()
	l := Line{from: now, unit: unit, depth: unit * r.Full(), most: r.Full(), floor: -unit * r.Full()}
	l.full = speedOf(unit, r)
	l.speed = l.full
	return l
}

// speedOf returns unit positions per interval of r, rounded down.
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

// At returns the last position that is available at the instant.
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

// When returns the first instant at which the position is available, rounded up.
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

// Wait returns the time from now until the position may be used, 0 if it may be.
func (l *Line) Wait(now time.Duration, place int64) time.Duration {
	if !l.Paused(now) && l.At(now) >= place {
		return 0
	}
	return l.Until(now, place)
}

// Until is Wait for a position that may not be used yet.
func (l *Line) Until(now time.Duration, place int64) time.Duration {
	when := l.When(place)
	if when == Never {
		return Never
	}
	return max(0, when-now)
}

// Cost returns the number of positions of n units. n must be within the burst.
func (l *Line) Cost(n int64) int64 { return n * l.unit }

// Full returns the burst in units. A cost above it can never be met.
func (l *Line) Full() int64 { return l.most }

// Unit returns the positions of one unit, and Depth the positions of a full burst.
func (l *Line) Unit() int64  { return l.unit }
func (l *Line) Depth() int64 { return l.depth }

// Low returns the start of the burst when the line has reached at. Positions up to it have expired.
func (l *Line) Low(at int64) int64 { return max(at-l.depth, l.floor) }

// FullAt returns the position that must be available for a full burst to remain, if positions up to booked are
// granted.
func (l *Line) FullAt(booked int64) int64 { return max(booked, l.floor) + l.depth }

// Paused reports whether nothing may be granted at the instant.
func (l *Line) Paused(now time.Duration) bool { return l.paused && now < l.from }

// PausedUntil returns the end of the pause, if there is one at the instant.
func (l *Line) PausedUntil(now time.Duration) (time.Duration, bool) { return l.from, l.Paused(now) }

// PerSecond returns the present rate of the line.
func (l *Line) PerSecond() float64 {
	return float64(l.speed) / one * float64(time.Second) / float64(l.unit)
}

// Pause stops the line until the instant. It never shortens a pause.
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

// Resume ends a pause early. The line continues from its position. Nothing is produced for the time of the pause, nor
// twice for a caller whose clock reading is older than the pause.
func (l *Line) Resume(now time.Duration) Line {
	next := *l
	if l.Paused(now) {
		next.from, next.paused = min(max(now, l.stood), l.from), false
	}
	return next
}

// Shut returns the line of a limiter that is out of use: it grants nothing.
func (l *Line) Shut() Line {
	next := *l
	next.most = 0
	return next
}

// Pace sets another rate, at most the configured one. It applies a learned rate. The slowest line advances one
// position in four seconds.
func (l *Line) Pace(now time.Duration, perSecond float64) Line {
	next := l.onward(now)
	next.speed = max(1, min(paceOf(l.unit, perSecond), l.full))
	return next
}

// paceOf returns unit positions per interval of a rate, rounded down. A floating-point product rounds up when it is
// even, so that a line at half its rate would be one position ahead after half a year.
func paceOf(unit int64, perSecond float64) uint64 {
	if !(perSecond > 0) { // also for NaN
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

// Change sets another rate and burst. Granted units stay granted, unit by unit. It returns false if the new rate is
// too far from the rate for which the line was made: over 64 times faster or 65,536 times slower. Then a new line
// must be made. A line made slower is as coarse as one position, at most 65 microseconds: calls may go that much too
// early.
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

// onward returns the line as it continues from now, or from the end of its pause.
func (l *Line) onward(now time.Duration) Line {
	next := *l
	if now > l.from {
		next.place, next.from, next.paused = l.At(now), now, false
	}
	return next
}
