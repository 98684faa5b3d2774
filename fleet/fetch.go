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

// The time between two requests of one queue. A store cannot predict returns. Other processes may return units,
// so the store is asked again before the wait is over.
const (
	scarceLeast = 25 * time.Millisecond // for a process that leases and got less than it requested
	askAgain    = time.Millisecond      // otherwise, the minimum
	askAtLeast  = time.Second           // the maximum while a call lacks units; a quarter of it while a call waits
	askSoon     = 50 * time.Millisecond // after the first request without a grant; doubled each time

	mostCopies = 1 << 20 // of one request
)

// asks sends a request if one is due, and returns when the next one is. The driver's call waits until the given
// instant or the end of ctx. The driver sends the request itself if a fast response is expected. Otherwise
// another goroutine does, and the driver continues to serve the line.
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
		return bucket.Never // the driver is woken
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
		// Otherwise the loop would check the returned units forever, since no other call takes them before.
		q.enough.Store(false)
		q.postpone(now, wait, min(wait, askAgain), why, 0) // no response will come, so wait at least this long
		return now
	}
	// A slow store is asked on another goroutine: at most one per queue, not one per waiting call.
	if q.soon(now, until) {
		q.fetch(ctx, now)
		return now
	}
	q.group.fleet.spawn(func() { q.fetch(noDriver, q.group.fleet.clock.Now()) })
	return bucket.Never
}

// frontCost returns the cost for the first waiting call of the limit that was short last.
func (q *queue) frontCost() (why int, cost int64) {
	q.mu.Lock()
	why = q.why
	q.mu.Unlock()
	q.line.First(func(a line.Asker) { cost = a.(*waiter).costs[why] })
	return why, cost
}

// open reports whether a request makes sense. It does not while a slow store knows that this process serves
// calls from its part. Calendar limits, which have no parts, are an exception if the standby has too few units
// for the waiting calls.
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

// alone reports whether the process serves calls from its part because the store is slow, and the store knows
// that.
func (q *queue) alone(now time.Duration) bool {
	g := q.group
	if now <= time.Duration(g.lone.Load()) {
		return false
	}
	g.own.Lock()
	defer g.own.Unlock()
	return g.standing.solo != 0 && g.standing.use(now).mode == parted
}

// soonest is the longest smoothed round trip with which the driver waits for a response itself. Meanwhile no
// call of its line is served from blocks.
const soonest = 20 * time.Millisecond

// soon reports whether a response will surely arrive before the driver is needed. The store must be near and
// healthy. Neither the driver's deadline nor the use of the part may come before the timeout of a request.
func (q *queue) soon(now, until time.Duration) bool {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	m, _ := g.standing.mode(now)
	return m <= waiting && !g.failing.Load() && g.standing.rtt < soonest && until-now >= g.timeout() && g.standing.from()-now >= g.timeout()
}

// noDriver is nil: no call lends its goroutine, so the request does not end when a call leaves.
var noDriver context.Context

// fetch makes a request for the waiting calls and distributes the grant. driver is the context of the call that
// lends its goroutine, or noDriver. If the response is late or that call leaves, another goroutine repeats the
// request with the same ID.
func (q *queue) fetch(driver context.Context, now time.Duration) {
	asked := false
	defer func() {
		if !asked {
			q.fetched()
		}
	}()
	if q.others {
		runtime.Gosched() // calls that were served by the last request and return immediately join this one
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

// gets sends the prepared request and distributes the grant. It reports false if the driver stopped waiting:
// then the caller repeats the request on another goroutine.
func (q *queue) gets(driver context.Context, now time.Duration) (over bool) {
	err := errPanicked
	defer func() {
		if over = err != errLeft; over {
			defer q.fetched()
			defer q.responded()
			q.share(q.first.after(q.ask.Delay), q.group.fleet.clock.Now(), err)
			q.others = q.calls > 1 || q.line.Waiting() > 0
		}
	}()
	err = q.call(driver, now)
	return
}

// errLeft is the error of a request whose driver stopped waiting.
var errLeft = errors.New("the caller no longer waits")

// errPanicked is the error of a request in which the store's client panicked. Its effect is unknown.
var errPanicked = errors.New("the store's client panicked")

// fetched ends a request, so that the next one can begin.
func (q *queue) fetched() {
	q.mu.Lock()
	q.asking = false
	q.mu.Unlock()
	q.line.Nudge()
}

// again prepares a repeat of the last request if its effect is unknown and its grant would still be usable.
func (q *queue) again(now time.Duration) bool {
	if !q.unsure {
		return false
	}
	for i, p := range q.leases {
		s, was := p.spec(), q.ask.Claims[i].Rule
		if q.steps[i] != beginDone || q.passed(q.first, now, min(s.hold, repeatFor)) || was.Shape != s.rule.Shape || was.Ring != s.rule.Ring {
			q.handOver(now)
			return false
		}
	}
	q.sure()
	for i, p := range q.leases {
		p.mu.Lock()
		p.demand.blocks += q.block[i]
		p.mu.Unlock()
	}
	q.ask.Again = true // if the store executed the first request, it does not execute the settlements again
	return true
}

// isFor reports whether the waiter's costs equal the costs of one copy of the request.
func (q *queue) isFor(w *waiter) bool {
	for i := range w.costs {
		if w.costs[i] != q.ask.Claims[i].Cost {
			return false
		}
	}
	return true
}

// prepare writes the request: as many copies as there are callers at the front with the same costs, and
// additional blocks. Callers with other costs wait for the next request or take from those blocks. If costs
// differ from call to call, a request serves few copies, and most calls take from blocks.
func (q *queue) prepare(now time.Duration) {
	a, f := &q.ask, q.group.fleet
	if a.Again && q.returns() { // its first copy may arrive later than the next request
		q.lane = f.nextID()
	}
	a.Group, a.ID, a.Lane, a.Again, a.Delay = q.group.name, f.nextID(), q.lane, false, 0
	q.first = f.sending(now)
	alike := q.front(now)
	q.calls, a.Copies = alike, int64(alike)
	if q.solo = q.alone(now); q.solo {
		a.Copies = 0
	}
	// The request reports returned units and debts. The store settles them first, so that it can grant the
	// returned units.
	a.Settle, a.Claims = a.Settle[:0], a.Claims[:0]
	q.begins(now)
	for i, p := range q.leases {
		s := p.fit(now)
		c := Claim{Rule: &s.rule, Key: p.key, Cost: q.costs[i]}
		p.expire(now, q.lacks && p.splinters(c.Cost))
		if !q.solo && !q.group.failing.Load() {
			p.spares(now, s, c.Cost)
		}
		a.Settle, q.back[i] = p.takePending(now, a.Settle, q.group.failing.Load())
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
	q.claimsHolds()
}

// claimsAlone changes a claim for a process that serves calls from its part. It only claims calendar limits,
// and only the units that the standby lacks for the waiting calls. It claims copies first, because a store
// grants only a portion of Extra.
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

// wanted returns how many units of limit i the waiting calls need.
func (q *queue) wanted(i int) (n int64) {
	q.line.Each(func(a line.Asker) line.Kind {
		n = addMost(n, a.(*waiter).costs[i])
		return line.Wait
	})
	return n
}

// front records the costs of the first call. It returns how many calls at the front have the same costs and
// need not leave units to calls of other queues.
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

// calendar sets the windows of a calendar limit.
func (p *lease) calendar(now time.Duration, s *spec, c *Claim) {
	if s.rule.Shape != limit.Calendar {
		return
	}
	c.Windows = s.limit.Windows(p.group.fleet.storeTime(now))
	if at := p.sight(); at.known && at.start.Equal(c.Start) {
		c.Seen, c.SeenBack = at.count, at.grant.Back
	}
	if p.blank(c.Start) {
		// All of the window counts as used, because another limit was in force in it.
		c.Seen, c.SeenBack = s.rule.Amount, seenBack
	}
}

// block returns how many additional units to lease: as many as the recent rate of use spends while they are
// valid. It is at most a tenth of the limit, so that ten leasing processes do not starve an eleventh. Blocks of
// requests under way count, since many queues may send requests for one limit at the same time.
func (p *lease) block(now time.Duration, s *spec) int64 {
	if !s.leased {
		return 0
	}
	held := p.held(now)
	p.mu.Lock()
	defer p.mu.Unlock()
	// A larger block would partly be returned unused, and its units would be unavailable meanwhile.
	n := int64(p.demand.rate * s.hold.Seconds())
	n = max(0, min(n, s.burst()/10)-held-p.demand.blocks)
	p.demand.blocks += n
	return n
}

// responded records that no response to the queue's request will come any more. Its blocks were kept, or are
// not granted.
func (q *queue) responded() {
	for i, p := range q.leases {
		p.mu.Lock()
		p.demand.blocks -= q.block[i]
		p.mu.Unlock()
	}
}

// takePending moves pending settlements into a request, with the rule and windows in force now. A settlement
// may be older than a change of the limit. While the store fails, only debts are moved: returned units of a
// request without a response are lost after repeatFor. takePending also returns p.back as it was before.
func (p *lease) takePending(now time.Duration, to []Settlement, failing bool) ([]Settlement, returned) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s, was := p.spec(), p.back
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
		p.seen.grant.Left = max(0, p.seen.grant.Left+p.seen.frees(&next)) // no response follows if no call waits
		if to = append(to, next); next.Back > 0 {
			p.back.sent = now
		}
	}
	p.pending = kept
	if !failing {
		to = p.takeHolds(s, to)
	}
	p.urgent.Store(false)
	return to, was
}
