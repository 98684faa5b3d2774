package limit

import (
	"context"
	"time"
)

// Fetch gets what Take found missing from the store that a fleet shares, waiting in
// order with the others of this process that wait for the same, until the instant at
// most. If the verdict is yes the shared charges are held, and Take has to be called
// once more: the others may have passed. An error is the cause of ctx's end; then
// nothing is held.
func (p *Permit) Fetch(ctx context.Context, now, until time.Duration, prio Priority) (Verdict, error) {
	var pools [mostShared]*pool
	var costs [mostShared]int64
	var turns [mostShared]Turn
	var at [mostShared]int
	n := 0
	for i := range p.n {
		e := p.at(i)
		if e.Registry.group == nil || e.held {
			continue
		}
		if n == mostShared {
			return p.tooMany(now), nil
		}
		e.find(now)
		pools[n], costs[n], at[n] = e.limiter.pool(), e.Cost, i
		if pools[n].crowdedOut {
			return p.crowdedOut(now, i), nil
		}
		n++
	}
	if n == 0 {
		return Verdict{OK: true}, nil
	}
	q := pools[0].group.queue(pools[:n])
	v, late, err := q.wait(ctx, now, until, prio, costs[:n], turns[:n])
	p.late = max(p.late, late)
	if err != nil || !v.OK {
		v.Why = at[min(v.Why, n-1)]
		p.Drop(q.group.fleet.clock.Now())
		return v, err
	}
	for k := range n {
		e := p.at(at[k])
		e.turn, e.held = turns[k], true
	}
	return v, nil
}

// tooMany refuses a call with more shared limits than a store is asked for at once.
func (p *Permit) tooMany(now time.Duration) Verdict {
	p.Drop(now)
	return Verdict{Wait: time.Second}
}
