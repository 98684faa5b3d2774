package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// Calls that lack different sets of leases wait in different queues. If two sets have a lease in common, its
// units go by priority and then by order of arrival, independent of the queue. The first call of a queue that
// got too few units has each of its leases kept for it. Later calls neither ask the store for such a lease nor
// take from its blocks. Otherwise a costly call would never be served among cheap calls of another set, which
// would take each unit as it accrues. Other processes do not know about this and may take the units.

// A kept is a reservation of a lease for the first call of a queue.
type kept struct {
	queue    *queue
	priority int
	came     uint64
	from     time.Duration // units available from this instant are kept
	at       time.Duration // when the store should have the units that the call needs
	until    time.Duration
}

// keptFor is how long at least the units are kept after the instant when the store should have enough.
const keptFor = 100 * time.Millisecond

// before reports whether a call with the priority and arrival number precedes c, in any queue.
func before(priority int, came uint64, c *line.Call) bool {
	return cmp.Or(cmp.Compare(priority, c.Priority), cmp.Compare(came, c.Came)) < 0
}

// keeps makes the leases of the queue keep units for its first call until an instant, in place of earlier
// reservations. Before that, other calls may use units that can accrue again in time. If the store has too few
// units at the instant, other processes have taken them. The reservation therefore lasts twice as long as
// expected.
func (q *queue) keeps(now, at time.Duration) {
	first, other := true, false
	q.line.Each(func(a line.Asker) line.Kind {
		if w := a.(*waiter); first {
			if first = false; now >= w.idles {
				other = w.lapses == 0
				w.lapses = later(at, max(keptFor, at-now))
				w.idles = later(w.lapses, w.lapses-now)
			}
			for i, p := range q.leases {
				if w.costs[i] > 0 {
					p.keep(kept{q, w.call.Priority, w.call.Came, at - p.after(w.costs[i]), at, w.lapses})
				}
			}
		}
		return line.Wait
	})
	if other {
		q.rouses()
	}
}

// frees ends the reservations for a call that has left the queue.
func (q *queue) frees(w *waiter) {
	dropped := false
	for _, p := range q.leases {
		dropped = p.drop(func(k kept) bool { return k.queue == q && k.came == w.call.Came }) || dropped
	}
	if dropped {
		q.rouses()
	}
}

// rouses makes other queues of the leases check again if calls wait in them: it may be their turn.
func (q *queue) rouses() {
	n := int32(q.line.Waiting())
	if slices.ContainsFunc(q.leases, func(p *lease) bool { return p.waits.Load() > n }) {
		q.group.nudge()
	}
}

// keep adds a reservation for a queue, in place of the previous one.
func (p *lease) keep(k kept) {
	p.drop(func(o kept) bool { return o.queue == k.queue })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, k)
	p.keeps.Store(min(p.keeps.Load(), int64(k.from)))
}

// drop ends reservations, and reports whether there were any.
func (p *lease) drop(which func(kept) bool) (dropped bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := len(p.kept)
	p.kept = slices.DeleteFunc(p.kept, which)
	from := bucket.Never
	for _, k := range p.kept {
		from = min(from, k.from)
	}
	p.keeps.Store(int64(from))
	return len(p.kept) < n
}

// yields returns the lease that the call needs and that is kept for an earlier call, and that reservation. ok
// is false if there is none.
func (w *waiter) yields(now time.Duration) (why int, to kept, ok bool) {
	for i, p := range w.queue.leases {
		if w.costs[i] == 0 || now < time.Duration(p.keeps.Load()) {
			continue
		}
		if k := p.keptFrom(now, w); k.until > to.until {
			why, to, ok = i, k, true
		}
	}
	return why, to, ok
}

// keptFrom returns the longest reservation for a call that precedes w, or the zero kept.
func (p *lease) keptFrom(now time.Duration, w *waiter) (longest kept) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, k := range p.kept {
		if k.queue != w.queue && k.from <= now && now < k.until && k.until > longest.until && before(k.priority, k.came, &w.call) {
			longest = k
		}
	}
	return longest
}

// leave is the step of a call that leaves a lease to another call. It waits and is woken when that call has
// been served. A call that cannot wait is refused, with the time until its turn.
func (w *waiter) leave(now time.Duration, why int, to kept) line.Step {
	if now >= w.until {
		w.verdict = limit.Verdict{Wait: max(askAgain, to.at-now) + w.queue.leases[why].after(w.costs[why]), Cause: limit.Cause{Why: why}}
		return line.Step{Kind: line.Refuse}
	}
	return line.Step{Kind: line.Wait, For: min(to.until-now, askAtLeast/4)}
}
