package fleet

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// How long lies between two asks of one queue. A store's wait counts only what it knows: others may give something back, so
// that it is asked again before that is over.
const (
	scarceLeast = 25 * time.Millisecond // of a process that leases and got less than it asked for
	askAgain    = time.Millisecond      // of others, at least
	askAtLeast  = time.Second           // at most while somebody wants something, and a quarter of it while somebody waits
	askSoon     = 50 * time.Millisecond // after the first ask that brought nothing; then twice as long each time

	mostCopies = 1 << 20 // of one ask
)

// asks asks the store if it is time to, and returns when it will be. The driver, whose call waits until the
// instant or the end of ctx, asks by itself if an answer will come soon; else somebody else does, while the driver
// looks after the others.
func (q *queue) asks(ctx context.Context, now, until time.Duration) time.Duration {
	open := q.open(now)
	why, cost := q.frontCost()
	q.mu.Lock()
	if why != q.why {
		cost = q.dear
	}
	switch next, _ := q.due(cost); {
	case q.asking, !open:
		q.mu.Unlock()
		return bucket.Never // it is woken
	case next > now:
		q.mu.Unlock()
		return next
	}
	wait, why := q.paused(now)
	if wait == 0 {
		q.asking, q.asked = true, now
	}
	q.mu.Unlock()
	if wait > 0 {
		// Or what came back, which nobody has before, would be looked at without end.
		q.enough.Store(false)
		q.postpone(now, wait, min(wait, askAgain), why, 0) // nothing is on its way: time must pass
		return now
	}
	// A store that is far or slow is asked on a goroutine of its own: one for a queue at most, and not one for each who waits.
	if q.soon(now, until) {
		q.fetch(ctx, now)
		return now
	}
	q.group.fleet.spawn(func() { q.fetch(noDriver, q.group.fleet.clock.Now()) })
	return bucket.Never
}

// frontCost is what the first of those who wait needs of the limit that was short last.
func (q *queue) frontCost() (why int, cost int64) {
	q.mu.Lock()
	why = q.why
	q.mu.Unlock()
	q.line.First(func(a line.Asker) { cost = a.(*waiter).costs[why] })
	return why, cost
}

// open reports whether asking makes sense: not while a slow store knows that this process
// goes on without, but for calendar limits, which have no parts, and of which less stands by than is wanted.
func (q *queue) open(now time.Duration) bool {
	if !q.alone(now) {
		return true
	}
	for i, p := range q.leases {
		if p.spec().rule.Shape == limit.Calendar && !p.passing && q.wanted(i) > p.stock(now) {
			return true
		}
	}
	return false
}

// alone reports whether the store is known to answer too late, and knows it.
func (q *queue) alone(now time.Duration) bool {
	g := q.group
	if now <= time.Duration(g.lone.Load()) {
		return false
	}
	g.own.Lock()
	defer g.own.Unlock()
	return g.standing.solo != 0 && g.standing.use(now).mode == parted
}

// soonest is how fast a store must answer, as a smoothed round trip, for the driver to wait for it: meanwhile it lets nobody go
// from what is held.
const soonest = 20 * time.Millisecond

// soon reports whether the answer to an ask will surely come before the driver is needed: the store is near
// and well, the driver waits for as long as an ask may take, and so long the process does not have to serve by
// itself.
func (q *queue) soon(now, until time.Duration) bool {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	m, _ := g.standing.mode(now)
	return m <= waiting && !g.failing.Load() && g.standing.rtt < soonest && until-now >= g.timeout() && g.standing.from()-now >= g.timeout()
}

// noDriver is nil: the goroutine that asks is nobody's, and the ask is not cut off when a call leaves.
var noDriver context.Context

// fetch asks the store for those who wait, and shares out what it grants. driver is the context of the call that
// lends its goroutine, noDriver if none does: where the answer does not come as soon as expected, or the call's wait ends, somebody else
// asks again in its place, under the same ID.
func (q *queue) fetch(driver context.Context, now time.Duration) {
	asked := false
	defer func() {
		if !asked {
			q.fetched()
		}
	}()
	if q.others {
		runtime.Gosched() // those who went with the last ask and come again at once go with this one
	}
	q.enough.Store(false)
	if !q.again(now) {
		q.prepare(now)
	}
	if asked = true; q.gets(driver, now) {
		return
	}
	q.group.fleet.spawn(func() { q.gets(noDriver, q.group.fleet.clock.Now()) })
}

// gets makes the ask that is prepared, and shares out what the store grants; but not if it reports false: then it is to be
// made again for the driver, who waits no longer.
func (q *queue) gets(driver context.Context, now time.Duration) (over bool) {
	err := errPanicked
	defer func() {
		if over = err != errLeft; over {
			defer q.fetched()
			q.share(q.first.after(q.ask.Delay), q.group.fleet.clock.Now(), err)
			q.others = q.calls > 1 || q.line.Waiting() > 0
		}
	}()
	err = q.call(driver, now)
	return
}

// errLeft is why the driver's own ask ended: the driver waits for it no longer.
var errLeft = errors.New("the caller no longer waits")

// errPanicked is why it is not known what became of an ask in which the store's client panicked.
var errPanicked = errors.New("the store's client panicked")

// fetched ends an ask: the next one may begin.
func (q *queue) fetched() {
	q.mu.Lock()
	q.asking = false
	q.mu.Unlock()
	q.line.Nudge()
}

// again makes the same ask once more if it is not known what became of it, and what it
// was granted may still be used.
func (q *queue) again(now time.Duration) bool {
	if !q.unsure {
		return false
	}
	q.unsure = false
	for i, p := range q.leases {
		if s := p.spec(); q.steps[i] != beginDone || q.passed(q.first, now, s.hold) {
			return false
		}
	}
	// A repeat settles nothing: if the store had the first it is done, and if not the debts are kept, and go with the next.
	q.ask.Again, q.ask.Settle = true, q.ask.Settle[:0]
	return true
}

// isFor reports whether what a waiter wants is one copy of the ask.
func (q *queue) isFor(w *waiter) bool {
	for i := range q.ask.Claims {
		if w.costs[i] != q.ask.Claims[i].Cost {
			return false
		}
	}
	return true
}

// prepare writes the ask: as many copies as there are callers at the front with the
// same costs, and blocks besides. Those with other costs behind them wait for the next ask, or go from what this one leaves:
// where costs differ from call to call an ask serves few, and blocks most.
func (q *queue) prepare(now time.Duration) {
	a, f := &q.ask, q.group.fleet
	a.Group, a.ID, a.Lane, a.Again, a.Delay = q.group.name, f.nextID(), q.lane, false, 0
	q.first = f.sending(now)
	alike := q.front(now)
	q.calls, a.Copies = alike, int64(alike)
	if q.solo = q.alone(now); q.solo {
		a.Copies = 0
	}
	// What came back and what is owed goes with the ask: the store does that before it grants, so that it can grant what came back.
	a.Settle, a.Claims = a.Settle[:0], a.Claims[:0]
	q.begins(now)
	for i, p := range q.leases {
		s := p.fit(now)
		c := Claim{Rule: &s.rule, Key: p.key, Cost: q.costs[i]}
		p.expire(now, q.lacks && p.splinters(c.Cost))
		if !q.solo && !q.group.failing.Load() {
			p.spares(now, s, c.Cost)
		}
		a.Settle = p.takePending(now, a.Settle, q.group.failing.Load())
		q.came[i] = p.cameBack()
		q.block[i] = p.block(now, s)
		if c.Extra = q.block[i]; !p.passing {
			c.Extra += max(0, p.wants(now, s))
			if s.rule.Shape == limit.Rolling {
				c.Extra += max(0, p.wantsReserve(now, s, c.Cost*a.Copies))
			}
		}
		if q.solo {
			q.claimsAlone(now, i, int64(alike), &c)
		}
		if q.takes {
			q.takesAll(i, s, &c)
		}
		p.calendar(now, s, &c)
		c.Cold = p.coldRoom(now, s, &c)
		a.Claims = append(a.Claims, c)
	}
}

// claimsAlone makes a claim that of a process which goes on by itself: only for what has no parts, and for what stands by
// to be enough for those who wait. Of it go copies first: of what is besides a store grants a part of what is left.
func (q *queue) claimsAlone(now time.Duration, i int, alike int64, c *Claim) {
	p := q.leases[i]
	if c.Rule.Shape != limit.Calendar || p.passing || c.Cost == 0 {
		c.Cost, c.Extra = 0, 0
		return
	}
	lacks := max(0, q.wanted(i)-p.stock(now))
	q.ask.Copies = max(q.ask.Copies, min(alike, (lacks+c.Cost-1)/c.Cost))
	c.Extra = max(c.Extra, lacks-q.ask.Copies*c.Cost)
}

// wanted is how many units those want who wait.
func (q *queue) wanted(i int) (n int64) {
	q.line.Each(func(a line.Asker) line.Kind {
		n = addMost(n, a.(*waiter).costs[i])
		return line.Wait
	})
	return n
}

// front notes what the first costs, and returns how many at the front cost the same and need leave nothing to calls of other
// queues.
func (q *queue) front(now time.Duration) (alike int) {
	clear(q.costs)
	others := false
	q.line.Each(func(a line.Asker) line.Kind {
		w := a.(*waiter)
		if alike == 0 {
			copy(q.costs, w.costs)
		}
		_, _, yields := w.yields(now)
		if others = others || !slices.Equal(w.costs, q.costs) || alike >= mostCopies || yields; !others {
			alike++
		}
		return line.Wait
	})
	return alike
}

// calendar fills in the windows of a calendar limit.
func (p *lease) calendar(now time.Duration, s *spec, c *Claim) {
	if s.rule.Shape != limit.Calendar {
		return
	}
	c.Windows = s.limit.Windows(p.group.fleet.storeTime(now))
	if at := p.sight(); at.known && at.start.Equal(c.Start) {
		c.Seen, c.SeenBack = at.count, at.grant.Back
	}
	if p.blank(c.Start) {
		// All of the window counts as gone: another limit was in force in it.
		c.Seen, c.SeenBack = s.rule.Amount, seenBack
	}
}

// block is how many units are worth taking besides: what will be used while they
// last, at the rate of late, and never more than a tenth of the limit: ten processes that lease must not starve an eleventh.
func (p *lease) block(now time.Duration, s *spec) int64 {
	if !s.leased {
		return 0
	}
	p.mu.Lock()
	// A block that takes longer to spend than it may be held would go back in part, and be missing meanwhile.
	n := int64(p.demand.rate * s.hold.Seconds())
	p.mu.Unlock()
	return max(0, min(n, s.most()/10)-p.held(now))
}

// takePending moves what is to be told to the store into an ask, by the rule and the windows that are in force now: a settlement
// may be older than a change of the limit. While the store fails only debts are told:
// what comes back would be lost with the ask, of which it is not known whether the store has heard it.
func (p *lease) takePending(now time.Duration, to []Settlement, failing bool) []Settlement {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.spec()
	kept := p.pending[:0]
	for i := range p.pending {
		next := p.pending[i]
		if failing && next.Back > 0 {
			kept = append(kept, next)
			continue
		}
		next.Rule = &s.rule
		next.Windows = s.windows(p.group.fleet.storeTime(now))
		p.demand.asked -= next.Back
		to = append(to, next)
	}
	p.pending = kept
	p.urgent.Store(false)
	return to
}
