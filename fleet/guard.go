package fleet

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A guard is how old an answer of the store may be when what it grants is used, for limits of which nothing is leased. The
// store keeps so much of them back. It begins at Options.Guard and follows the distance of the store in steps of guardStep:
// it becomes longer when a round trip takes more than half of it, or answers miss it again and again. One late answer
// changes nothing: what it granted goes back, and the store is asked again.
type guard struct {
	last    time.Duration // the round trip of the latest beat; 0 before the first
	longest lately        // the round trips by which the guard was judged
}

const (
	// guardStep is the factor between two guards. Where the guards of processes differ, the store keeps more back for the
	// shorter ones, so steps are few.
	guardStep = 4

	// longestGuard is the longest that a guard becomes by itself. A process whose store is farther away uses its part.
	longestGuard = 500 * time.Millisecond

	// After mostLate late answers for one queue within lateWithin, or within lateTimes of what they take, the guard becomes
	// longer. If the limits of the queue do not allow that and no answer was in time between them, the store is slow.
	mostLate   = 3
	lateWithin = time.Second
	lateTimes  = 4
)

// guardFor returns the guard for answers that take so long: twice as long, if that is at most longestGuard.
func (f *Fleet) guardFor(took time.Duration) time.Duration {
	g := f.o.Guard
	for g < 2*took && g < longestGuard {
		g = min(guardStep*g, longestGuard)
	}
	return g
}

// judgeBeat judges the guard, and whether the store is slow, by the shorter of the latest two round trips of beats: a stall
// delays one of them. The first, which may have waited for a connection, counts until the second. own is held.
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

// judgeGuard makes the guard longer for answers that take so long. It makes it shorter if answers that take twice as long as
// the longest of the last minute would still be in time. own is held.
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

// setGuard changes the guard; own is held.
func (g *Group) setGuard(next time.Duration) {
	if old := g.guard.Swap(int64(next)); old != int64(next) {
		g.beating.hold = newLately() // it was that of the old guard
	}
}

// fit returns how the limit is shared by the present guard of the group.
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
	p.source.spec.CompareAndSwap(s, next) // else the limit was changed meanwhile
	return p.spec()
}

// fitted returns a spec as it is with a longer guard: the longest with which the limit is leased, and can be held back, as
// before.
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

// lateAnswers counts the answers for one queue that came too late for what they granted to be used.
type lateAnswers struct {
	sent  time.Duration // when the ask of the latest was sent
	since time.Duration // when the first of those counted came
	n     int
	least time.Duration // the shortest time that one of them took
	row   int           // how many came since an answer was in time
}

// noteLate notes that what an ask was granted was too old to be used, and makes the guard longer if that happens often.
// arrived is false if the answer was in time and the call woke late.
func (q *queue) noteLate(sent, now time.Duration, arrived bool) {
	q.mu.Lock()
	l, took := &q.late, now-sent
	if sent <= l.sent && l.n > 0 { // of the same ask
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

// inTime notes that an answer was in time.
func (q *queue) inTime() {
	q.mu.Lock()
	q.late.row = 0
	q.mu.Unlock()
}
