package bucket

import "time"

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

// Take books n units as of now and returns how long to wait for them. If that is
// longer than patience, or n is above the burst, it reports false and next is s. A
// cost of 0 is always met.
func (s State) Take(l *Line, now time.Duration, n int64, patience time.Duration) (next State, turn Turn, wait time.Duration, ok bool) {
	if n < 0 || n > l.Full() {
		return s, Turn{}, Never, false
	}
	if n == 0 {
		return s, Turn{}, 0, true
	}
	turn = l.Next(s.Booked, l.At(now), l.Cost(n))
	wait = l.Wait(now, turn.Place)
	if wait > patience || turn.Place >= End {
		return s, Turn{}, wait, false
	}
	return State{turn.Place}, turn, wait, true
}

// Left is the units that are there and not spoken for. A pause does not change
// it.
func (s State) Left(l *Line, now time.Duration) int64 {
	at := l.At(now)
	return max(0, at-max(s.Booked, l.Low(at))) / l.unit
}
