package fleet

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A guard is how old a response of the store may be when its grant is used, for limits that are not leased. The
// store withholds rate x guard. It starts at Options.Guard and changes with the store's response time, in steps
// of guardStep. It grows when a round trip takes more than half of it, or when responses are repeatedly too
// late. One late response changes nothing: its grant is returned and the request is repeated.
type guard struct {
	last    time.Duration // the round trip of the latest heartbeat; 0 before the first
	longest lately        // the round trips by which the guard was chosen
}

const (
	// guardStep is the factor between two guards. If the guards of processes differ, the store withholds more
	// for the shorter ones, so there are few steps.
	guardStep = 4

	// longestGuard is the longest automatic guard. A process whose store is slower uses its part.
	longestGuard = 500 * time.Millisecond

	// The guard grows after mostLate late responses for one queue within lateWithin, or within lateTimes of
	// their round trip. If the limits of the queue do not allow a longer guard, and no response between them
	// was in time, the store is slow.
	mostLate   = 3
	lateWithin = time.Second
	lateTimes  = 4
)

// guardFor returns the guard for responses that take so long: at least twice that, up to longestGuard.
func (f *Fleet) guardFor(took time.Duration) time.Duration {
	g := f.o.Guard
	for g < 2*took && g < longestGuard {
		g = min(guardStep*g, longestGuard)
	}
	return g
}

// judgeBeat chooses the guard, and whether the store is slow, by the shorter of the latest two heartbeat round
// trips, since a stall delays one of them. The first round trip, which may include connecting, counts until the
// second. own is held.
func (g *Group) judgeBeat(now, took time.Duration) {
	b := &g.beating
	last := b.guard.last
	if b.guard.last = max(1, took); last == 0 {
		g.setGuard(max(time.Duration(g.guard.Load()), g.fleet.guardFor(took)))
		return
	}
	took = min(took, last)
	g.judgeGuard(now, took)
	if hold := time.Duration(-b.hold.most(now)); hold > 0 && took > hold*4/5 {
		g.standing.slow = true
	}
}

// judgeGuard makes the guard longer for responses that take so long. It makes the guard shorter if responses
// that take twice the longest round trip of the last minute would still be in time. own is held.
func (g *Group) judgeGuard(now, took time.Duration) {
	x := &g.beating.guard
	x.longest.note(now, int64(took))
	old := time.Duration(g.guard.Load())
	next := g.fleet.guardFor(took)
	if next < old {
		next = min(old, g.fleet.guardFor(2*time.Duration(x.longest.most(now))))
	}
	g.setGuard(next)
}

// setGuard changes the guard. own is held.
func (g *Group) setGuard(next time.Duration) {
	if old := g.guard.Swap(int64(next)); old != int64(next) {
		g.beating.hold = newLately() // it belonged to the old guard
	}
}

// fit returns how the limit is shared with the group's current guard.
func (p *lease) fit(now time.Duration) *spec {
	s := p.spec()
	if s.fitted == time.Duration(p.group.guard.Load()) {
		return s
	}
	next := p.group.spec(s.limit)
	next.since = s.since
	if next.rule.Ring != s.rule.Ring {
		next.since = now
	}
	p.source.spec.CompareAndSwap(s, next) // fails if the limit has changed meanwhile
	return p.spec()
}

// fitted returns a spec with a longer guard: the longest one with which the limit is still leased and withheld
// as before.
func (f *Fleet) fitted(s *spec, guard time.Duration) *spec {
	for g := guard; g > f.o.Guard; g /= guardStep {
		if n := newSpecFrom(s.limit, f.o.Lease, f.o.Guard, g); n.late == s.late && n.leased == s.leased {
			s = n
			break
		}
	}
	s.fitted = guard
	return s
}

// lateAnswers counts the responses for one queue that arrived too late to use their grants.
type lateAnswers struct {
	sent  time.Duration // when the latest of these requests was sent
	since time.Duration // when the first counted response arrived
	n     int
	least time.Duration // the shortest of their round trips
	row   int           // late responses since one was in time
}

// noteLate records that a grant was too old to be used, and makes the guard longer if that happens often.
// arrived is false if the response was in time but the call woke late.
func (q *queue) noteLate(sent, now time.Duration, arrived bool) {
	q.mu.Lock()
	l, took := &q.late, now-sent
	if sent <= l.sent && l.n > 0 { // the same request
		q.mu.Unlock()
		return
	}
	if l.n == 0 || now-l.since > max(lateWithin, lateTimes*took) {
		l.since, l.n, l.least = now, 0, bucket.Never
	}
	l.sent, l.n, l.least = sent, l.n+1, min(l.least, took)
	if arrived {
		l.row++
	}
	often, least, row := l.n >= mostLate, l.least, l.row >= mostLate
	if often {
		l.n, l.row = 0, 0
	}
	q.mu.Unlock()
	if !often {
		return
	}
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	if g.standing.asks { // see reach
		return
	}
	g.judgeGuard(now, least)
	if row && slices.ContainsFunc(q.leases, func(p *lease) bool {
		s := p.fit(now)
		return s.late && s.hold*4/5 < least
	}) {
		g.standing.slow = true
	}
}

// inTime records a response that was in time.
func (q *queue) inTime() {
	q.mu.Lock()
	q.late.row = 0
	q.mu.Unlock()
}
