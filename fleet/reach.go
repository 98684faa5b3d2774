package fleet

import (
	"slices"
	"sync/atomic"
	"time"
)

// A reach is how long answers of the store take at least, of late. Where that is longer than Options.Guard, what is granted
// may be used for longer, and the store holds back more: else nothing that a far store grants could ever be used. It is for
// stores that processes must ask however late they answer; with others a process uses its part then.
type reach struct {
	ages  [3]time.Duration // of the latest answers, as far as they count against what was granted
	next  int
	guard atomic.Int64 // what follows from it, in place of Options.Guard; 0 if that is enough
}

const (
	// Guards are multiples of reachStep, so that processes at the same distance have the same, and mostReach at most.
	reachStep = 25 * time.Millisecond
	mostReach = 500 * time.Millisecond
)

// note notes the age of an answer, and reports whether the guard changes: it grows if three answers in a row came too
// late or nearly so, and shrinks if one of three is far below it.
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

// farther is a limit as the group shares it with a store so far away, if the limit allows for it.
func (s *spec) farther(lease, guard time.Duration) *spec {
	for ; guard > s.guard; guard -= reachStep {
		if far := newSpecFrom(s.limit, lease, s.guard, guard); far.late || !s.late {
			return far
		}
	}
	return s
}

// aged notes the age of an answer to an ask. If the guard changes, so does how all limits of the group are shared. own is held.
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
