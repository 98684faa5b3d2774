package fleet

import (
	"slices"
	"sync/atomic"
	"time"
)

// A reach records how long responses of the store take at least. If that is longer than Options.Guard, grants
// are valid for longer and the store withholds more. Otherwise grants of a distant store could never be used.
// It applies to stores that processes must ask even if their responses are late (Standing.Asks). With other
// stores, the process then uses its part.
type reach struct {
	ages  [3]time.Duration // of the latest responses, without Delay
	next  int
	guard atomic.Int64 // the guard that replaces Options.Guard; 0 if that is enough
}

const (
	// Guards are multiples of reachStep, up to mostReach, so that processes at the same distance use the same
	// guard.
	reachStep = 25 * time.Millisecond
	mostReach = 500 * time.Millisecond
)

// note records the age of a response, and reports whether the guard changes. It grows if three consecutive
// responses were late or almost late. It shrinks if one of three is far below it.
func (r *reach) note(age, least time.Duration) (changed bool) {
	r.ages[r.next%len(r.ages)] = age
	if r.next++; r.next < len(r.ages) {
		return false
	}
	old := time.Duration(r.guard.Load())
	shortest := slices.Min(r.ages[:])
	guard := min(mostReach, (shortest*4/3+reachStep-1)/reachStep*reachStep)
	switch {
	case shortest*10 > max(old, least)*9:
	case old > 0 && shortest*3 < old:
		if guard <= least {
			guard = 0
		}
	default:
		return false
	}
	r.guard.Store(int64(guard))
	return guard != old
}

// farther returns the limit with a longer guard, up to guard, if the limit allows one.
func (s *spec) farther(lease, guard time.Duration) *spec {
	for ; guard > s.guard; guard -= reachStep {
		if far := newSpecFrom(s.limit, lease, s.guard, guard); far.late || !s.late {
			return far
		}
	}
	return s
}

// aged records the age of a response. If the guard changes, it updates all limits of the group. own is held.
func (g *Group) aged(age time.Duration) {
	if !g.reach.note(age, g.fleet.o.Guard) {
		return
	}
	g.beating.hold = newLately()
	g.mu.Lock()
	for _, s := range g.sources {
		old := s.spec.Load()
		next := g.spec(old.limit)
		next.since = old.since
		s.spec.CompareAndSwap(old, next)
	}
	g.mu.Unlock()
	g.nudge()
}
