package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A spec is a limit as a fleet shares it.
type spec struct {
	limit limit.Limit
	rule  Rule
	// hold is how long after a store was asked what it granted may be used. The rule
	// allows for it: what is granted and not yet used never adds up to more than
	// the limit.
	hold time.Duration
	// late says that what came later than hold must not be used at all. Limits too
	// small to allow for a delay have no such rule: they are exact at the store, and
	// what goes out is as even as the network is.
	late   bool
	leased bool
	guard  time.Duration
	fitted time.Duration // the group's guard by which it was made; see Fleet.fitted
	since  time.Duration // when it took another's place
}

const (
	// These are Options.Lease and Options.Guard that are 0.
	defaultLease = 250 * time.Millisecond
	defaultGuard = 10 * time.Millisecond

	// longestLease keeps pauses and changes from being learnt late.
	longestLease = 2 * time.Second

	// What is held back of a limit is rate x hold. For limits by the minute and longer a hold may be a sixtieth of the window,
	// for rolling ones a hundredth: so much of them is the most that is lost.
	leaseShare   = 60
	countedShare = 32 // of the burst, for limits of another unit than requests
	rollingShare = 100
	laterShare   = 100 // of the time in which a unit comes, for limits of few units

	// worthLeasing is how many units all of a fleet use in a lease at least; below it there is nothing to share out.
	worthLeasing = 4
)

// newSpec is how the limit is shared when leases last for lease, none if that is
// below 0, and an answer of the store is expected within guard.
func newSpec(l limit.Limit, lease, guard time.Duration) *spec {
	return newSpecFrom(l, lease, guard, guard)
}

// newSpecFrom is newSpec for a group whose guard has followed the distance of the store from base, which is Options.Guard.
// The weight of a unit depends on base only: a cell forgets what may come back when the weight of a unit changes.
func newSpecFrom(l limit.Limit, lease, base, guard time.Duration) *spec {
	s := &spec{limit: l, rule: Rule{Name: l.Name, Shape: l.Shape, Amount: l.Amount}, leased: lease >= 0, guard: guard}
	switch l.Shape {
	case limit.Bucket:
		s.bucket(lease, base, guard)
	case limit.Rolling:
		s.rolling(lease, guard)
	case limit.Calendar:
		s.hold = max(guard, min(longestLease, lease))
	}
	if s.late {
		s.rule.Hold = ceilMicros(s.hold)
	}
	return s
}

// bucket lets the store keep burst - rate*hold, so that blocks that are not spent
// yet can never add up to more than the limit: with B and R of the limit, what goes
// in a window W is at most B - R*hold + R*(W + hold).
func (s *spec) bucket(lease, base, guard time.Duration) {
	r := s.limit.Rate
	s.rule.Meter = bucket.MeterOf(r)
	// fill is how long an empty bucket takes to be full; a hold of a quarter of it holds a quarter of the burst back.
	fill := time.Duration(float64(r.Full()) / r.PerSecond() * float64(time.Second))
	share := r.Per / leaseShare
	if s.limit.UnitName() != limit.Requests { // calls reserve more than they use, and need the burst meanwhile
		share = min(share, fill/countedShare)
	}
	if block := max(guard, min(longestLease, max(lease, share), fill/4)); r.PerSecond()*block.Seconds() < worthLeasing {
		s.leased = false
	} else if s.leased {
		s.hold = block
	}
	if !s.leased {
		s.hold = guard
	}
	m := &s.rule.Meter
	reserve := (s.hold.Microseconds() + 1) * m.Drain
	if (base.Microseconds()+1)*m.Drain <= m.Unit/50 {
		// With less than a unit to hold back it is cheaper to let each come so much
		// later: the unit after the burst of n comes at n*(interval + later) - later.
		later := max(base, min(longestGuard, time.Duration(float64(time.Second)/r.PerSecond())/laterShare))
		s.hold = max(s.hold, later)
		m.Unit += (later.Microseconds() + 1) * m.Drain
		m.Cap = m.Unit * r.Full()
		reserve = (s.hold - later).Microseconds() * m.Drain
	}
	switch {
	case reserve == 0:
		s.late = true
	case s.hold > fill/2 || m.Cap-reserve < m.Unit:
		s.leased = false
	default:
		m.Cap -= reserve
		s.late = true
	}
}

// rolling counts what was granted for as long as the window and hold: it may be
// used so much later.
func (s *spec) rolling(_, guard time.Duration) {
	w := windowOf(&s.limit)
	// Units count for so much longer than the window: that is what is lost.
	s.hold = min(longestLease, w.Per/rollingShare)
	if s.hold < guard {
		s.hold, s.leased = min(guard, w.Per/10), false
	}
	s.late = true
	w.Per += s.hold
	s.rule.Ring = bucket.RingOf(w)
}

// windowOf is the window of a rolling limit.
func windowOf(l *limit.Limit) bucket.Window { return bucket.Window{Amount: l.Amount, Per: l.Per} }

// untilReset is how long after a store was asked what it granted of a calendar window
// may be used: what goes then still arrives in it.
func (s *spec) untilReset(g *Grant) time.Duration { return g.Reset - s.guard }

// windows are those of a calendar limit.
func (s *spec) windows(at time.Time) limit.Windows {
	if s.rule.Shape != limit.Calendar {
		return limit.Windows{}
	}
	return s.limit.Windows(at)
}

// most is the largest cost that can ever be met.
func (s *spec) most() int64 {
	if s.rule.Shape == limit.Bucket {
		return s.rule.Meter.Cap / s.rule.Meter.Unit
	}
	return s.rule.Amount
}

// heldBack is how much of its burst the store never grants at once, which is rate*hold: see bucket.
func (s *spec) heldBack() int64 {
	if s.rule.Shape != limit.Bucket {
		return 0
	}
	return s.limit.Rate.Full() - s.most()
}

// perSecond is the limit's rate.
func (s *spec) perSecond(now time.Time) float64 {
	if s.limit.Shape == limit.Calendar {
		w := s.limit.Windows(now)
		return float64(s.limit.Amount) / max(1, w.End.Sub(w.Start).Seconds())
	}
	return s.limit.PerSecond()
}
