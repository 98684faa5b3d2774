package limit

import (
	"context"
	"errors"
	"time"
)

// giveBack tells the store of what came back and of debts that no call has taken
// along; of everything that is leased if all is set.
func (f *Fleet) giveBack(ctx context.Context, all bool) error {
	var errs []error
	for _, g := range f.all() {
		errs = append(errs, g.giveBack(ctx, all))
	}
	return errors.Join(errs...)
}

// isActive notes a pool that may have something to give back.
func (g *Group) isActive(p *pool) {
	g.mu.Lock()
	g.active[p] = struct{}{}
	g.mu.Unlock()
}

// idleAfter is how long nothing was asked for before what is held and pending is
// given back without waiting for the next ask.
const idleAfter = time.Second

func (g *Group) giveBack(ctx context.Context, all bool) error {
	now := g.fleet.clock.Now()
	g.mu.Lock()
	var idle []*pool
	for p := range g.active {
		if all || p.idle(now) {
			idle = append(idle, p)
			delete(g.active, p)
		}
	}
	for k, q := range g.queues {
		if q.unused(now) {
			delete(g.queues, k)
		}
	}
	g.mu.Unlock()
	for len(idle) > 0 {
		n := min(len(idle), backAtOnce)
		if err := g.tell(ctx, now, idle[:n], all); err != nil {
			return err
		}
		idle = idle[n:]
	}
	return nil
}

const backAtOnce = 64

// tell tells the store what the pools have to say.
func (g *Group) tell(ctx context.Context, now time.Duration, pools []*pool, all bool) error {
	a := Ask{Group: g.name, ID: g.fleet.nextID(), Lane: g.lane}
	for _, p := range pools {
		p.expire(now, all)
		p.resume(now)
		a.Settle = p.takePending(now, a.Settle)
		if p.held(now) > 0 {
			g.isActive(p)
		}
	}
	if len(a.Settle) == 0 {
		return nil
	}
	ctx, cancel := g.fleet.clock.WithTimeout(ctx, g.fleet.o.Timeout, context.DeadlineExceeded)
	defer cancel()
	err := g.fleet.store.Take(ctx, &a)
	if g.fleet.o.Events.Called != nil {
		e := StoreCall{Group: g.name, Took: g.fleet.clock.Now() - now, Err: err}
		for i := range a.Settle {
			e.Back += a.Settle[i].Back
		}
		g.fleet.o.Events.Called(e)
	}
	if err == nil {
		g.fleet.succeeds(g.fleet.clock.Now())
		return nil
	}
	keepDebts(now, a.Settle, pools)
	g.fleet.fails(g.fleet.clock.Now(), err)
	return err
}

// idle reports whether nobody has asked for a while, or others have to be told to
// pause.
func (p *pool) idle(now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return now >= p.demand.at+idleAfter || p.untold.Load() != 0
}

// unused reports whether a queue can be forgotten.
func (q *queue) unused(now time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return !q.led && q.n == 0 && now > q.used+beatEvery
}
