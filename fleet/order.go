package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// Calls that lack different sets of leases wait in different queues. Where two sets have a lease in common, what comes of it
// goes by priority and then to the call that came first, whichever queue that is in: the first of a queue that was granted too
// little has each of its leases kept for it, and calls that come after it neither ask the store for such a lease nor take of
// what is held. Without that a costly call would never go among cheap ones of another set: these would take each unit
// as it comes. Another process knows nothing of it, and may take what comes.

// A kept is what a lease keeps for the first of a queue.
type kept struct {
	queue    *queue
	priority int
	came     uint64
	from     time.Duration // what comes then is kept
	at       time.Duration // when the store should have what the call needs
	until    time.Duration
}

// keptFor is for how long at least something is kept beyond the instant at which the store was to have it.
const keptFor = 100 * time.Millisecond

// before reports whether a call goes before another that waits for the same, in whatever queue.
func before(priority int, came uint64, c *line.Call) bool {
	return cmp.Or(cmp.Compare(priority, c.Priority), cmp.Compare(came, c.Came)) < 0
}

// keeps has the leases of the queue keep for its first what that needs at an instant, and nothing for whom they kept before.
// A lease that has enough sooner than that is used by others meanwhile, as far as it can have come again by then. If the
// store has not enough by the instant, others of the fleet take it: others of this process are kept from it for twice as long as was
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

// frees has the leases keep nothing for a call any more that has left the queue.
func (q *queue) frees(w *waiter) {
	dropped := false
	for _, p := range q.leases {
		dropped = p.drop(func(k kept) bool { return k.queue == q && k.came == w.call.Came }) || dropped
	}
	if dropped {
		q.rouses()
	}
}

// rouses has other queues of the leases look again, if calls wait in them: it may be their turn.
func (q *queue) rouses() {
	n := int32(q.line.Waiting())
	if slices.ContainsFunc(q.leases, func(p *lease) bool { return p.waits.Load() > n }) {
		q.group.nudge()
	}
}

// keep notes what the lease keeps for a queue, in place of what it kept.
func (p *lease) keep(k kept) {
	p.drop(func(o kept) bool { return o.queue == k.queue })
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = append(p.kept, k)
	p.keeps.Store(min(p.keeps.Load(), int64(k.from)))
}

// drop ends that the lease keeps something, and reports whether it did.
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

// yields is the lease that costs the call something and is kept for another that goes before it, and for whom; ok is false if there
// is none.
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

// keptFrom is what is kept longest for another that goes before the call; the zero kept if nothing is.
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

// leave is the step of a call that leaves a lease to another: it waits, and is roused when that has gone. One without patience
// is told when its turn would be.
func (w *waiter) leave(now time.Duration, why int, to kept) line.Step {
	if now >= w.until {
		w.verdict = limit.Verdict{Wait: max(askAgain, to.at-now) + w.queue.leases[why].after(w.costs[why]), Cause: limit.Cause{Why: why}}
		return line.Step{Kind: line.Refuse}
	}
	return line.Step{Kind: line.Wait, For: min(to.until-now, askAtLeast/4)}
}
