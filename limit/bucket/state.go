package bucket

import (
	"math/bits"
	"time"
)

// A State is the last granted position.
type State struct{ Booked int64 }

// Empty returns the state without units at the instant, and Fresh the state with a full burst.
func (l *Line) Empty(now time.Duration) State { return State{l.At(now)} }
func (l *Line) Fresh(now time.Duration) State { return State{l.At(now) - l.depth} }

// All, as a number of units to return, means the whole turn.
const All = 1<<63 - 1

// Next returns the next turn if the line has reached position at: after the granted positions, but not before the
// burst.
func (l *Line) Next(booked, at, cost int64) Turn {
	low := max(booked, l.Low(at))
	return Turn{low + cost, low, cost}
}

// NextFor is Next for positions that are used one by one. It skips positions of a full burst that the burst will have
// passed after later, at most a sixteenth of it.
func (l *Line) NextFor(later time.Duration, booked, at, cost int64) Turn {
	hi, lo := bits.Mul64(uint64(later), l.speed)
	low := max(booked, l.Low(at)+min(int64(hi<<32|lo>>32), l.depth/16))
	return Turn{low + cost, low, cost}
}

// Take takes n units if they are available now. Otherwise next is s, and wait is the time until they are: Never if n
// exceeds the burst. A cost of 0 is always met.
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

// Left returns the units that are available. A pause does not change it.
func (s State) Left(l *Line, now time.Duration) int64 {
	at := l.At(now)
	return max(0, at-max(s.Booked, l.Low(at))) / l.unit
}
