package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A spec is a limit in the form that a fleet shares.
type spec struct {
	limit limit.Limit
	rule  Rule
	held  *Rule // for a budget: the tally of units that are not spent yet
	// hold is how long after a request its grant may be used. The rule allows for it: granted and unused units
	// never add up to more than the limit.
	hold time.Duration
	// late reports that a grant must not be used after hold. Limits too small for that do not have this rule:
	// they are exact at the store, and calls are as evenly spaced as the network allows.
	late   bool
	leased bool
	guard  time.Duration
	fitted time.Duration // the group's guard for which it was made; see Fleet.fitted
	since  time.Duration // when it replaced another spec
}

const (
	// Defaults of Options.Lease and Options.Guard.
	defaultLease = 250 * time.Millisecond
	defaultGuard = 10 * time.Millisecond

	// longestLease bounds the delay before a process learns of pauses and changes.
	longestLease = 2 * time.Second

	// The store withholds rate x hold of a limit. For limits per minute and longer, a hold may be a sixtieth of
	// the window, and a hundredth for rolling limits. At most that fraction is lost.
	leaseShare   = 60
	countedShare = 32 // of the burst, for limits whose unit is not requests
	rollingShare = 100
	laterShare   = 100 // of the time in which one unit accrues, for limits of few units

	// worthLeasing is how many units the complete fleet must use during a lease. With fewer, leases are not
	// useful.
	worthLeasing = 4
)

// newSpec returns how the limit is shared if leases last for lease and responses of the store are used within
// guard. If lease is negative, no units are leased.
func newSpec(l limit.Limit, lease, guard time.Duration) *spec {
	return newSpecFrom(l, lease, guard, guard)
}

// newSpecFrom is newSpec for a group whose guard has grown from base, which is Options.Guard, to guard. The
// weight of a unit depends only on base, because a cell drops its history when the weight changes.
func newSpecFrom(l limit.Limit, lease, base, guard time.Duration) *spec {
	s := &spec{limit: l, rule: Rule{Name: l.Name, Shape: l.Shape, Amount: l.Amount}, held: heldRule(&l), guard: guard}
	s.leased = lease >= 0 && s.held == nil // other processes could not tell leased units of a budget from spent ones
	switch l.Shape {
	case limit.Bucket:
		s.bucket(lease, base, guard)
	case limit.Rolling:
		s.rolling(lease, guard)
	case limit.Calendar:
		s.hold = max(guard, min(longestLease, lease))
	}
	if s.late {
		s.rule.Hold = s.hold.Microseconds() + 1
	}
	return s
}

// bucket makes the store enforce burst - rate*hold, so that unspent blocks never exceed the limit. With burst B
// and rate R of the limit, at most B - R*hold + R*(W + hold) units are used in a window W.
func (s *spec) bucket(lease, base, guard time.Duration) {
	r := s.limit.Rate
	s.rule.Meter = bucket.MeterOf(r)
	// fill is how long an empty bucket takes to fill. A hold of a quarter of it withholds a quarter of the
	// burst.
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
		// If less than one unit must be withheld, delaying each unit by that much costs less. The unit after a
		// burst of n then accrues at n*(interval + later) - later.
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

// rolling makes the store count grants for the window plus hold, since they may be used that much later.
func (s *spec) rolling(_, guard time.Duration) {
	w := windowOf(&s.limit)
	// The time that units count beyond the window is lost.
	s.hold = min(longestLease, w.Per/rollingShare)
	if s.hold < guard {
		s.hold, s.leased = min(guard, w.Per/10), false
	}
	s.late = true
	w.Per += s.hold
	s.rule.Ring = bucket.RingOf(w)
}

// windowOf returns the window of a rolling limit.
func windowOf(l *limit.Limit) bucket.Window { return bucket.Window{Amount: l.Amount, Per: l.Per} }

// untilReset returns how long after a request its grant of a calendar window may be used, so that calls still
// arrive in the window.
func (s *spec) untilReset(g *Grant) time.Duration { return g.Reset - s.guard }

// windows returns the windows of a calendar limit, and zero Windows for other shapes.
func (s *spec) windows(at time.Time) limit.Windows {
	if s.rule.Shape != limit.Calendar {
		return limit.Windows{}
	}
	return s.limit.Windows(at)
}

// most returns the largest cost that can ever be granted.
func (s *spec) most() int64 { return s.rule.Most() }

// burst returns how many units the store grants at once. Only one call may cost more; see Rule.Most.
func (s *spec) burst() int64 {
	if s.rule.Shape == limit.Bucket {
		return s.rule.Meter.Most()
	}
	return s.rule.Amount
}

// perSecond returns the limit's rate.
func (s *spec) perSecond(now time.Time) float64 {
	if s.limit.Shape == limit.Calendar {
		w := s.limit.Windows(now)
		return float64(s.limit.Amount) / max(1, w.End.Sub(w.Start).Seconds())
	}
	return s.limit.PerSecond()
}
