package bucket

import (
	"math/bits"
	"time"
)

// A State is how far the supply is spoken for: the last place given away.
type State struct{ Booked int64 }

// Empty is the state with nothing left at the instant, Fresh that with a full
// burst.
func (l *Line) Empty(now time.Duration) State { return State{l.At(now)} }
func (l *Line) Fresh(now time.Duration) State { return State{l.At(now) - l.depth} }

// All, as a number of units to give back, is the whole of a turn.
const All = 1<<63 - 1

// Next is the turn that comes next if the line has reached place at: behind what
// is booked, but not before the burst.
func (l *Line) Next(booked, at, cost int64) Turn {
	low := max(booked, l.Low(at))
	return Turn{low + cost, low, cost}
}

// NextFor is Next for places that are used one by one: of a full burst those are left out that
// the burst will have passed so much later, a sixteenth of it at most.
func (l *Line) NextFor(later time.Duration, booked, at, cost int64) Turn {
	hi, lo := bits.Mul64(uint64(later), l.speed)
	low := max(booked, l.Low(at)+min(int64(hi<<32|lo>>32), l.depth/16))
	return Turn{low + cost, low, cost}
}

// Take takes n units if they are there now. If they are not, next is s, and it says how long
// it takes until they are: Never if n is above the burst. A cost of 0 is always met.
func (s State) Take(l *Line, now time.Duration, n int64) (next State, wait time.Duration, ok bool) {
	if n < 0 || n > l.Full() {
		return s, Never, false
	}
	if n == 0 {
		return s, 0, true
	}
	turn := l.Next(s.Booked, l.At(now), l.Cost(n))
	if wait = l.Wait(now, turn.Place); wait > 0 || turn.Place >= End {
		return s, wait, false
	}
	return State{turn.Place}, 0, true
}

// Left is the units that are there and not spoken for. A pause does not change
// it.
func (s State) Left(l *Line, now time.Duration) int64 {
	at := l.At(now)
	return max(0, at-max(s.Booked, l.Low(at))) / l.unit
}
