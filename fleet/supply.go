package fleet

import (
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Supply is what a store can grant of a group at an instant: the time by which buckets
// are drained, and how much of each limit is out. The zero Supply is that of a group
// without members, at the beginning of time.
//
// Instants are microseconds, parts millionths.
type Supply struct {
	Now   int64 // the store's clock
	Z     int64 // the supply's, never ahead of it
	Out   int64 // parts that are out; Whole at most
	Saved int64 // for how many microseconds tokens have come for these parts; 0 means that it is not known
	Next  int64 // until when less will surely not be out
	Cold  bool  // all of it, as the store does not know who holds parts
	Falls []Fall
	Stale []Stale
}

// allIn is the supply of a group of which nobody holds a part.
func allIn(now int64) *Supply { return &Supply{Now: now, Z: now} }

// Z is the supply's clock at an instant up to which the lag is counted.
func (m *Members) Z(now int64) int64 {
	z := now - m.Lag
	if m.Frac > 0 {
		z--
	}
	return z
}

// Supply is what can be granted at the instant.
func (m *Members) Supply(now int64) *Supply {
	m.Turn(now)
	return &Supply{
		Now: now, Z: m.Z(max(now, m.At)), Out: min(m.Out, Whole), Saved: m.saved(), Next: m.Next, Cold: m.Unknown >= Whole,
		Falls: m.Falls, Stale: m.Stale,
	}
}

// partDown is a part, in millionths, of n, rounded down: all parts together are n at most. Neither may be below 0, and
// the part Whole at most.
func partDown(n, part int64) int64 {
	hi, lo := bits.Mul64(uint64(n), uint64(part))
	q, _ := bits.Div64(hi, lo, Whole)
	return int64(q)
}

// partUp is a part of n, rounded up.
func partUp(n, part int64) int64 { return n - partDown(n, Whole-part) }

// floor is the weight that a bucket has at least: the tokens that are saved up out
// there, or may have been spent of late.
func (s *Supply) floor(cap, drain int64) int64 {
	// What is out now counts as taken: of the burst a part, but no more than has come since it is out.
	w := partUp(cap, s.Out)
	if s.Saved > 0 {
		w = min(w, drains(s.Saved, drain))
	}
	// What was out until a while ago comes back as tokens do: those who were out had saved up as much, and may have
	// spent it.
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

// drains is the weight that drains in so many microseconds, at most most62.
func drains(us, drain int64) int64 { return timesMost(max(0, us), drain) }

// away is how much of a rolling limit is not the store's to grant: what is out, and what
// was out within the window.
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

// Floor is the weight that a bucket of a capacity, drained so fast, has at least, for stores that keep no Cells.
func (s *Supply) Floor(cap, drain int64) int64 { return s.floor(cap, drain) }

// Away is how much of a rolling limit is not the store's to grant, for stores that keep no Cells.
func (s *Supply) Away(r *Rule) int64 { return s.away(r) }

// Slower is how many microseconds it takes for so many to pass on the supply's clock, for stores that keep no Cells.
func (s *Supply) Slower(us int64) int64 { return s.slower(us) }

// slower is how long the supply takes for so many microseconds of its clock, while as
// much is out as now. If all is out, nothing comes before that changes.
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

// change is after how many microseconds to look again for a change: whoever is out may be
// heard at any time.
func (s *Supply) change() int64 { return time.Second.Microseconds() }

// Wait is how many microseconds until so many units fit into a bucket, and Reset until
// all that can be granted is there again.
func (s *Supply) Wait(m *bucket.Meter, f bucket.Fill, n int64) int64 {
	if n*m.Unit > m.Cap-partUp(m.Cap, s.Out) {
		return s.change()
	}
	f.Weight = max(f.Weight, s.floor(m.Cap, m.Drain))
	return s.slower(max(0, f.At-s.Z) + m.Wait(f, n))
}

// Reset is how many microseconds until a bucket is as empty as it can be: all that can be granted is there.
func (s *Supply) Reset(m *bucket.Meter, f bucket.Fill) int64 { return s.slower(s.Drain(m, f)) }

// Drain is what Reset would be if no part were out: the bucket's weight as a number of microseconds.
func (s *Supply) Drain(m *bucket.Meter, f bucket.Fill) int64 { return max(0, f.At-s.Z) + m.Empty(f) }
