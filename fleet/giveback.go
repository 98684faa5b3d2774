package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// giveBack tells the store of what came back and of debts that no call has taken
// along; of everything that is leased if all is set.
func (f *Fleet) giveBack(ctx context.Context, all bool) error {
	var errs []error
	for _, g := range f.all() {
		g.forget(f.clock.Now())
		if all || !g.failing.Load() {
			errs = append(errs, g.giveBack(ctx, all))
		}
	}
	return errors.Join(errs...)
}

// isActive notes a lease that may have something to give back.
func (g *Group) isActive(p *lease) {
	g.mu.Lock()
	g.active[p] = struct{}{}
	g.mu.Unlock()
}

// idleAfter is how long nothing was asked for before what is held and pending is
// given back without waiting for the next ask.
const idleAfter = time.Second

// giveBack tells the store, in as many asks as it takes, what the group has to tell. After an error what is
// left is told another time.
func (g *Group) giveBack(ctx context.Context, all bool) error {
	now := g.fleet.clock.Now()
	idle := g.idle(now, all)
	for len(idle) > 0 {
		told, err := g.tell(ctx, now, idle, all)
		idle = idle[told:]
		if err != nil {
			for _, p := range idle {
				g.isActive(p)
			}
			return err
		}
	}
	return nil
}

// idle takes the leases that have something to tell and that nobody asks for from those
// that are active. A lease that gets something to tell later is active again.
func (g *Group) idle(now time.Duration, all bool) (idle []*lease) {
	g.mu.Lock()
	for p := range g.active {
		idle = append(idle, p)
	}
	g.mu.Unlock()
	if !all {
		idle = slices.DeleteFunc(idle, func(p *lease) bool { return !p.idle(now) })
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range idle {
		delete(g.active, p)
	}
	return idle
}

// forget drops queues in which nobody waits. A call that has found one meanwhile goes
// through it as before.
func (g *Group) forget(now time.Duration) {
	g.mu.Lock()
	queues := maps.Clone(g.queues)
	g.mu.Unlock()
	maps.DeleteFunc(queues, func(_ string, q *queue) bool { return !q.unused(now) })
	g.mu.Lock()
	for k := range queues {
		delete(g.queues, k)
	}
	g.mu.Unlock()
	for _, q := range queues {
		q.forget()
	}
}

// backAtOnce is how many leases one ask tells of at most.
const backAtOnce = 64

// tell tells the store what the first of the leases have to say, and returns how many
// those were.
func (g *Group) tell(ctx context.Context, now time.Duration, leases []*lease, all bool) (told int, err error) {
	a := Ask{Group: g.name, ID: g.fleet.nextID(), Lane: g.lane}
	for told < min(len(leases), backAtOnce) && len(a.Settle) < mostSettling {
		p := leases[told]
		told++
		p.expire(now, all)
		// Nobody asks for this limit: less need stand by.
		for s, ok := p.release(now, p.spec(), all); ok; s, ok = p.release(now, p.spec(), all) {
			p.settle(now, s)
		}
		a.Settle = p.takePending(now, a.Settle, false)
		if p.held(now) > 0 || p.standsBy(now) || p.reserves(now) > 0 {
			g.isActive(p)
		}
	}
	if len(a.Settle) == 0 {
		return told, nil
	}
	ctx, cancel := g.fleet.clock.WithTimeout(ctx, max(g.fleet.o.Timeout, idleAfter), context.DeadlineExceeded)
	defer cancel()
	err = g.fleet.store.Take(ctx, &a)
	if g.fleet.o.Events.Called != nil {
		e := StoreCall{Group: g.name, Took: g.fleet.clock.Now() - now, Err: err}
		for i := range a.Settle {
			e.Back += a.Settle[i].Back
		}
		g.fleet.o.Events.Called(e)
	}
	if err == nil {
		return told, nil
	}
	// What came back is lost: given back again it might count twice.
	keepDebts(now, a.Settle, leases[:told])
	g.own.Lock()
	defer g.own.Unlock()
	g.failed(err)
	return told, err
}

// idle reports whether nobody has asked for a while, or others have to be told of
// something. What is pending of a lease in use travels with its asks, for nothing.
func (p *lease) idle(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now >= p.demand.at+idleAfter || p.urgent.Load()
}

// unused reports whether a queue can be forgotten.
func (q *queue) unused(now time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.Waiting() == 0 && !q.asking && (now > q.used+idleQueue || q.evicted())
}

// evicted reports whether the queue is of a key that was forgotten.
func (q *queue) evicted() bool {
	return slices.ContainsFunc(q.leases, func(p *lease) bool { return p.evicted.Load() })
}
