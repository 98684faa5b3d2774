package fleet

import (
	"context"
	"maps"
	"slices"
	"time"
)

// A debt is a number of units of a lease that were spent without the store.
type debt struct {
	lease *lease
	units int64
}

// settlement returns the report of a debt, by the rule that is in force when it is sent.
func (d *debt) settlement(now time.Duration) Settlement {
	s := d.lease.spec()
	return Settlement{Rule: &s.rule, Key: d.lease.key, Windows: s.windows(d.lease.group.fleet.storeTime(now)), Owe: d.units}
}

// owed collects the units of rolling limits that were spent without the store. If the store lost its data, it
// includes all units that still count.
func (g *Group) owed(now time.Duration, lost bool) {
	for _, p := range slices.SortedFunc(maps.Keys(g.spenders), byID) {
		o := &p.own
		p.turnOwn(now, p.spec(), g.standing.use(now))
		o.spent.drop(now)
		if lost {
			o.debt = o.spent.sum
		}
		if o.debt > 0 {
			g.beating.debts = append(g.beating.debts, debt{p, o.debt})
			o.debt = 0
		}
		if o.spent.sum == 0 {
			delete(g.spenders, p)
		}
	}
}

// debtsAtOnce is how many debts one request reports, so that a store's script does not run for long.
const debtsAtOnce = 500

// tellDebts reports debts to the store. Retries do not charge them again. No heartbeat is sent before they are
// reported.
func (g *Group) tellDebts(ctx context.Context) error {
	f := g.fleet
	now := f.clock.Now()
	g.own.Lock()
	b := &g.beating
	// The request keeps its ID until it gets a response, so that debts are charged once. New debts wait.
	if b.told == 0 {
		b.told, b.first = f.nextID(), min(len(b.debts), debtsAtOnce)
	}
	a := Ask{Group: g.name, ID: b.told, Lane: g.debtLane, Again: true}
	for i := range b.debts[:b.first] {
		a.Settle = append(a.Settle, b.debts[i].settlement(now))
	}
	ctx, cancel := f.clock.WithTimeout(ctx, g.timeout(), context.DeadlineExceeded)
	g.own.Unlock()
	defer cancel()
	err := f.store.Take(ctx, &a)
	now = f.clock.Now()
	g.own.Lock()
	defer g.own.Unlock()
	b.busy = false
	if err != nil {
		g.failed(err)
		return err
	}
	b.debts, b.told = b.debts[b.first:], 0
	b.at = now
	f.beater.Wake()
	return nil
}

// leave returns the part, and waits no longer than ctx. It first reports the usage of the part.
func (g *Group) leave(ctx context.Context) error {
	now := g.fleet.clock.Now()
	g.own.Lock()
	g.standing.left = true
	g.lone.Store(int64(g.standing.from()))
	g.owed(now, false)
	met := g.standing.met || g.standing.pending != nil
	g.standing.seq++
	b := Beat{Group: g.name, Client: g.fleet.member, Seq: g.standing.seq, Silence: 1, Life: 1, Leave: true}
	g.own.Unlock()
	if !met {
		return nil
	}
	// The store must know the usage of the part before other processes get it.
	for g.owes() {
		if err := g.tellDebts(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := g.fleet.clock.WithTimeout(ctx, longestAsk, context.DeadlineExceeded)
	defer cancel()
	_, err := g.fleet.store.Beat(ctx, &b)
	return err
}

// owes reports whether there are unreported debts.
func (g *Group) owes() bool {
	g.own.Lock()
	defer g.own.Unlock()
	return len(g.beating.debts) > 0
}
