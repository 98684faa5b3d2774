package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// refuseAlone refuses calls that this process's part will not serve before their deadlines. It returns when the
// first of the other calls can be served. over reports whether the driver was refused.
func (q *queue) refuseAlone(now time.Duration, driver line.Asker) (at time.Duration, over bool) {
	g := q.group
	g.own.Lock()
	u := g.standing.use(now)
	slow, again := g.standing.solo != 0 && u.mode == parted, g.again(now)
	g.own.Unlock()
	at = bucket.Never
	if !u.mode.uses() && u.mode != refusing {
		return at, false
	}
	// Each call waits until the calls before it have their units: ahead is their cost.
	pause, _ := q.paused(now)
	ahead := make([]int64, len(q.leases))
	q.line.Each(func(a line.Asker) line.Kind {
		w := a.(*waiter)
		v := limit.Verdict{Wait: again, Cause: limit.Cause{Lack: limit.LacksStore}}
		if u.mode != refusing {
			v = q.aloneFor(now, u, ahead, w)
		}
		if slow && v.Lack == limit.LacksQuota && now < w.until { // the store is asked for more
			return line.Wait
		}
		if v.Lack != limit.LacksNothing || later(now, v.Wait) > w.until || v.Wait > 0 && w.elsewhere(v.Why, v.Wait) {
			over = over || a == driver
			return q.refuses(now, w, v)
		}
		at = min(at, later(now, max(v.Wait, pause, time.Millisecond)))
		for k := range q.leases {
			ahead[k] = addMost(ahead[k], w.costs[k])
		}
		return line.Wait
	})
	return at, over
}

// refuses ends the wait of a call that cannot succeed, and records its demand.
func (q *queue) refuses(now time.Duration, w *waiter, v limit.Verdict) line.Kind {
	q.group.refused(now, q.leases, w.costs)
	w.verdict = v
	return line.Refuse
}

// aloneFor returns how long a waiter waits for this process's part, and for which limit.
func (q *queue) aloneFor(now time.Duration, u ownUse, ahead []int64, w *waiter) (v limit.Verdict) {
	q.group.own.Lock()
	defer q.group.own.Unlock()
	for i, p := range q.leases {
		a := p.allows(now, u, ahead[i], w.costs[i])
		if a.lack != limit.LacksNothing {
			return limit.Verdict{Wait: q.group.again(now), Cause: limit.Cause{Why: i, Lack: a.lack}}
		}
		if a.wait > v.Wait {
			v.Wait, v.Why = a.wait, i
		}
	}
	return v
}

// refused records the demand of a refused call: a process gets a part by the demand of its callers, including
// refused ones.
func (g *Group) refused(now time.Duration, leases []*lease, costs []int64) {
	g.own.Lock()
	defer g.own.Unlock()
	for i, p := range leases {
		g.wants(now, p.spec(), costs[i])
	}
}

// fromLeases takes the costs of a waiter from blocks, all or none. If a later lease has too few units, it puts
// the units of the earlier ones back. The queue's line is locked.
func (q *queue) fromLeases(now time.Duration, w *waiter) bool {
	w.by = noExpiry
	for i, p := range q.leases {
		t, by, ok := p.draw(now, w.costs[i])
		w.by = w.by.first(by)
		if !ok {
			for k := range i {
				q.leases[k].again(now, w.turns[k])
			}
			return false
		}
		w.turns[i] = t
	}
	return true
}

// again puts units that were just taken back into their block.
func (p *lease) again(now time.Duration, t limit.Turn) {
	switch { // Back would wake the line that called this
	case isOwn(t):
		p.backOwn(now, t, t.Cost)
		return
	case t.Cost > 0 && p.standsAgain(now, t, t.Cost): // the units may come from the standby
		return
	}
	for i := range p.blocks {
		b := p.blocks[i].Load()
		if b == nil || t.Cost == 0 || b.mark.At != t.Low {
			continue
		}
		left := b.left.Load()
		if b.turn(left, t.Cost) == t.Turn && b.left.CompareAndSwap(left, left+t.Cost) {
			return
		}
	}
	p.Back(now, t, t.Cost)
}

// refuse refuses the calls that cannot wait as long as the limit why requires, given the calls before them. It
// applies to calls that cost at least cost. It reports whether a cheaper call remains: that one may be served
// when the costly calls before it have been.
func (q *queue) refuse(now, wait time.Duration, why int, cost int64) (unknown bool) {
	var ahead int64
	dear := false // a call before it costs as much
	q.line.Each(func(a line.Asker) line.Kind {
		w := a.(*waiter)
		cheap, own := !dear && w.costs[why] < cost, later(wait, q.leases[why].least(ahead))
		if !cheap && (later(now, own) > w.until || w.elsewhere(why, own)) {
			return q.refuses(now, w, limit.Verdict{Wait: later(wait, q.leases[why].after(ahead)), Cause: limit.Cause{Why: why}})
		}
		dear, unknown = !cheap, unknown || cheap
		ahead = addMost(ahead, w.costs[why])
		return line.Wait
	})
	return unknown
}

// least returns the least time until n more units are available. Units of a rolling limit that were used
// together return together.
func (p *lease) least(n int64) time.Duration {
	if s := p.spec(); s.limit.Shape == limit.Rolling {
		return time.Duration(min(n/max(1, s.limit.Amount), int64(bucket.Never/4/max(1, s.limit.Per)))) * s.limit.Per
	}
	return p.after(n)
}

// after returns the time in which n units accrue at the limit's rate; 0 for a calendar limit, whose units all
// return at the reset.
func (p *lease) after(n int64) time.Duration {
	s := p.spec()
	if s.limit.Shape == limit.Calendar || n <= 0 {
		return 0
	}
	return time.Duration(min(float64(n)/s.limit.PerSecond()*float64(time.Second), float64(bucket.Never/4)))
}
