package fleet

import (
	"context"
	"time"
)

// A debt is what was spent of a lease without the store.
type debt struct {
	lease *lease
	units int64
}

// settlement tells of a debt by the rule that is in force when it is sent.
func (d *debt) settlement(now time.Duration) Settlement {
	s := d.lease.spec()
	return Settlement{Rule: &s.rule, Key: d.lease.key, Windows: s.windows(d.lease.group.fleet.storeTime(now)), Owe: d.units}
}

// owed collects what was spent of rolling limits without the store. If that has lost its
// memory it is told of all that still counts.
func (g *Group) owed(now time.Duration, lost bool) {
	for p := range g.spenders {
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

// debtsAtOnce is how many debts one ask tells of, so that a store's script does not run for long.
const debtsAtOnce = 500

// tellDebts tells the store what is owed, once however often it takes. Until it is told no
// further beat is sent.
func (g *Group) tellDebts(ctx context.Context) error {
	f := g.fleet
	now := f.clock.Now()
	g.own.Lock()
	b := &g.beating
	// The ask has the ID of the first try until it is answered, so that debts are charged once; what comes up meanwhile waits.
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

// leave gives the part back, waiting at most as long as ctx. What was spent of it is told
// first.
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
	// The part must not be others' before what was spent of it is known.
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

// owes reports whether there are debts that the store has not been told.
func (g *Group) owes() bool {
	g.own.Lock()
	defer g.own.Unlock()
	return len(g.beating.debts) > 0
}
