package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"time"
)

// giveBack reports returned units and debts that no request has reported. If all is set, it also returns all
// leased units.
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

// isActive records a lease that may have something to return.
func (g *Group) isActive(p *lease) {
	g.mu.Lock()
	g.active[p] = struct{}{}
	g.mu.Unlock()
}

// idleAfter is how long a lease is unused before its units and settlements are returned without a request of a
// call.
const idleAfter = time.Second

// giveBack sends as many requests as the group's settlements need. After an error the rest stays active.
func (g *Group) giveBack(ctx context.Context, all bool) error {
	now := g.fleet.clock.Now()
	g.collect(now)
	unsure := g.settleUnsure(ctx, now)
	if unsure != nil && !all {
		return unsure
	}
	idle := g.idle(now, all)
	for len(idle) > 0 {
		told, err := g.tell(ctx, now, idle, all)
		idle = idle[told:]
		if err != nil {
			for _, p := range idle {
				g.isActive(p)
			}
			return errors.Join(unsure, err)
		}
	}
	return unsure
}

// byID puts leases in the order of their creation, so that a simulator's runs repeat.
func byID(a, b *lease) int { return cmp.Compare(a.id, b.id) }

// idle removes idle leases with settlements from the active ones and returns them. A lease with a later
// settlement becomes active again.
func (g *Group) idle(now time.Duration, all bool) (idle []*lease) {
	g.mu.Lock()
	for p := range g.active {
		idle = append(idle, p)
	}
	g.mu.Unlock()
	if !all {
		idle = slices.DeleteFunc(idle, func(p *lease) bool { return !p.idle(now) })
	}
	slices.SortFunc(idle, byID)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, p := range idle {
		delete(g.active, p)
	}
	return idle
}

// forget drops unused queues. A call that has already found one still uses it.
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

// backAtOnce is the largest number of leases in one request.
const backAtOnce = 64

// tell sends the settlements of the first leases to the store, and returns how many leases those were.
func (g *Group) tell(ctx context.Context, now time.Duration, leases []*lease, all bool) (told int, err error) {
	a := Ask{Group: g.name, ID: g.fleet.nextID(), Lane: g.takeLane()}
	for told < min(len(leases), backAtOnce) && len(a.Settle) < mostSettling {
		p := leases[told]
		told++
		p.expire(now, all)
		// No call uses this limit, so it needs a smaller standby.
		for s, ok := p.release(now, p.spec(), all); ok; s, ok = p.release(now, p.spec(), all) {
			p.settle(now, s)
		}
		a.Settle, _ = p.takePending(now, a.Settle, false)
		if p.held(now) > 0 || p.standsBy(now) || p.reserves(now) > 0 {
			g.isActive(p)
		}
	}
	if len(a.Settle) == 0 {
		g.freeLane(a.Lane)
		return told, nil
	}
	first := g.fleet.sending(now)
	if err = g.report(ctx, &a); err != nil {
		g.repeats(&unsettled{ask: a, leases: leases[:told], first: first})
		return told, err
	}
	g.freeLane(a.Lane)
	return told, nil
}

// report sends a request for which no call waits.
func (g *Group) report(ctx context.Context, a *Ask) error {
	f := g.fleet
	ctx, cancel := f.clock.WithTimeout(ctx, max(f.o.Timeout, idleAfter), context.DeadlineExceeded)
	defer cancel()
	now := f.clock.Now()
	err := f.store.Take(ctx, a)
	if f.o.Events.Called != nil {
		e := StoreCall{Group: g.name, Again: a.Again, Took: f.clock.Now() - now, Err: err}
		for i := range a.Settle {
			e.Back += a.Settle[i].Back
		}
		f.o.Events.Called(e)
	}
	if err != nil && !errors.Is(err, ErrWindow) {
		g.own.Lock()
		defer g.own.Unlock()
		g.failed(err)
	}
	return err
}

// takeLane returns a lane that no other request uses.
func (g *Group) takeLane() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	if n := len(g.lanes); n > 0 {
		lane := g.lanes[n-1]
		g.lanes = g.lanes[:n-1]
		return lane
	}
	return g.fleet.nextID()
}

// freeLane lets the next request use a lane.
func (g *Group) freeLane(lane uint64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.lanes = append(g.lanes, lane)
}

// idle reports whether the lease is unused or has urgent settlements. Settlements of a lease in use are part of
// its next request, at no cost.
func (p *lease) idle(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now >= p.demand.at+idleAfter || p.urgent.Load()
}

// unused reports whether a queue can be dropped.
func (q *queue) unused(now time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.line.Waiting() == 0 && !q.asking && (now > q.used+idleQueue || q.evicted())
}

// evicted reports whether the queue belongs to a key that was dropped.
func (q *queue) evicted() bool {
	return slices.ContainsFunc(q.leases, func(p *lease) bool { return p.evicted.Load() })
}
