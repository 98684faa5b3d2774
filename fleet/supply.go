package fleet

import (
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Supply is what a store can grant of a group at an instant: the clock by which buckets drain, and how much
// of each limit is out. The zero Supply describes a group without members at the beginning of time. A Supply
// shares slices with its Members, and is valid until these change.
//
// Instants are microseconds, parts are millionths.
type Supply struct {
	Now   int64 // the store's clock
	Z     int64 // the supply's clock, never ahead of Now
	Out   int64 // parts that are out, at most Whole
	Saved int64 // for how many microseconds tokens have accrued for these parts; 0 means unknown
	Next  int64 // until when Out does not become less
	Cold  bool  // all parts are out, because the store does not know their holders
	Falls []Fall
	Stale []Stale
}

// allIn returns the supply of a group in which no process holds a part.
func allIn(now int64) *Supply { return &Supply{Now: now, Z: now} }

// Z returns the supply's clock at an instant up to which the lag is counted.
func (m *Members) Z(now int64) int64 {
	z := now - m.Lag
	if m.Frac > 0 {
		z--
	}
	return z
}

// Supply returns the supply at the instant.
func (m *Members) Supply(now int64) *Supply {
	m.Turn(now)
	return &Supply{
		Now: now, Z: m.Z(max(now, m.At)), Out: min(m.Out, Whole), Saved: m.saved(), Next: m.Next, Cold: m.Unknown >= Whole,
		Falls: m.Falls, Stale: m.Stale,
	}
}

// partDown returns a part of n, in millionths, rounded down, so that all parts together are at most n. n and
// part must not be negative, and part is at most Whole.
func partDown(n, part int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, _ := bits.Div64(hi, lo, Whole)
	return int64(q)
}

// partUp returns a part of n, rounded up.
func partUp(n, part int64) int64 { return n - partDown(n, Whole-part) }

// floor returns the least weight of a bucket: the tokens that are saved in parts that are out, or may have been
// spent lately.
func (s *Supply) floor(cap, drain int64) int64 {
	// Parts that are out now count as taken, but with no more than the tokens that have accrued since.
	w := partUp(cap, s.Out)
	if s.Saved > 0 {
		w = min(w, drains(s.Saved, drain))
	}
	// Parts that were out until recently return as tokens accrue. Their holders had saved that many tokens and
	// may have spent them.
	for _, f := range s.Falls {
		top := partUp(cap, min(f.Part, Whole))
		top -= min(top, drains(s.Z-f.At, drain))
		if f.Ends != 0 {
			top = min(top, drains(f.Ends-s.Z, drain))
		}
		w = max(w, top)
	}
	return w
}

// drains returns the weight that drains in us microseconds, at most most62.
func drains(us, drain int64) int64 { return timesMost(max(0, us), drain) }

// away returns how much of a rolling limit the store cannot grant: parts that are out, or were out within the
// window.
func (s *Supply) away(r *Rule) int64 {
	if r.Tally {
		return 0
	}
	out := s.Out
	for _, e := range s.Stale {
		if s.Now < min(e.Until, e.At+r.Ring.Window()) {
			out += e.Part
		}
	}
	return partUp(r.Amount, min(out, Whole))
}

// Floor returns the least weight of a bucket with the capacity and drain rate, for stores without Cells.
func (s *Supply) Floor(cap, drain int64) int64 { return s.floor(cap, drain) }

// Away returns how much of a rolling limit the store cannot grant, for stores without Cells.
func (s *Supply) Away(r *Rule) int64 { return s.away(r) }

// Slower returns how many microseconds the supply's clock takes for us microseconds, for stores without Cells.
func (s *Supply) Slower(us int64) int64 { return s.slower(us) }

// slower returns how long the supply's clock takes for us microseconds while Out stays the same. If all parts
// are out, no unit accrues before that changes.
func (s *Supply) slower(us int64) int64 {
	const most = 1 << 62 / Whole
	switch {
	case us <= 0 || s.Out == 0 || us == never64:
		return us
	case s.Out < Whole && us < most:
		return (us*Whole + Whole - s.Out - 1) / (Whole - s.Out)
	}
	return max(us, s.change())
}

// change returns how many microseconds later to check for a change. A silent process may send a heartbeat at
// any time.
func (s *Supply) change() int64 { return time.Second.Microseconds() }

// Wait returns how many microseconds it takes until n units fit into a bucket.
func (s *Supply) Wait(m *bucket.Meter, f bucket.Fill, n int64) int64 {
	if s.Out > 0 && n*m.Unit > m.Cap-partUp(m.Cap, s.Out) {
		return s.change()
	}
	if w := s.floor(m.Cap, m.Drain); w > 0 {
		f.Weight = max(f.Weight, w)
	}
	return s.slower(max(0, f.At-s.Z) + m.Wait(f, n))
}

// Reset returns how many microseconds it takes until all units of a bucket that can be granted are available.
func (s *Supply) Reset(m *bucket.Meter, f bucket.Fill) int64 { return s.slower(s.Drain(m, f)) }

// Drain returns the same as Reset if no part is out: the bucket's weight in microseconds.
func (s *Supply) Drain(m *bucket.Meter, f bucket.Fill) int64 { return max(0, f.At-s.Z) + m.Empty(f) }
