package limit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// ErrLate means that the store's answer came too late for what it granted to be
// used. A store that is always slow needs a larger guard.
var ErrLate = errors.New("the store answered later than the guard")

const (
	scarceLeast = 25 * time.Millisecond // between asks of a process that leases and got less than it asked for
	askAgain    = time.Millisecond      // between others
	askAtLeast  = time.Second           // while somebody wants something, and a quarter of it while somebody waits
	askSoon     = 50 * time.Millisecond // after the first ask that brought nothing; then twice as long each time
	mostCopies  = 1 << 20
)

// fetch asks the store for those who wait, and shares out what it grants.
func (q *queue) fetch(now time.Duration) {
	q.mu.Lock()
	q.asked = now
	q.mu.Unlock()
	q.enough.Store(false)
	q.prepare(now)
	sent := q.group.fleet.sending(now)
	err := q.call(now)
	q.share(sent, q.group.fleet.clock.Now(), err)
}

// prepare writes the ask: as many copies as there are callers at the front with the
// same costs, and blocks besides.
func (q *queue) prepare(now time.Duration) {
	a, f := &q.ask, q.group.fleet
	a.Group, a.ID, a.Lane, a.Again = q.group.name, f.nextID(), q.lane, false
	q.gather()
	a.Copies = int64(len(q.batch))
	a.Settle, a.Claims = a.Settle[:0], a.Claims[:0]
	for i, p := range q.pools {
		s := p.spec.Load()
		cost := q.batch[0].costs[i]
		p.expire(now, q.lacks && p.splinters(cost))
		p.resume(now)
		a.Settle = p.takePending(now, a.Settle)
		q.came[i] = p.cameBack()
		c := Claim{Rule: &s.rule, Key: p.key, Cost: cost, Extra: p.block(now, s)}
		p.calendar(now, s, &c)
		a.Claims = append(a.Claims, c)
	}
}

// gather puts those at the front whose costs are alike into the batch.
func (q *queue) gather() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.batch = q.batch[:0]
	for i := range q.waiting {
		for _, w := range q.waiting[i] {
			if len(q.batch) > 0 && w.costs != q.batch[0].costs || len(q.batch) >= mostCopies {
				return
			}
			if w.state == waits {
				w.state = granting
			}
			q.batch = append(q.batch, w)
		}
	}
}

// calendar fills in the windows of a fixed limit.
func (p *pool) calendar(now time.Duration, s *spec, c *Claim) {
	if s.rule.Shape != Fixed {
		return
	}
	c.Windows = s.limit.Windows(p.group.fleet.storeTime(now))
	if at := p.sight(); at.known && at.start.Equal(c.Start) {
		c.Seen, c.SeenBack = at.count, at.grant.Back
	}
}

// block is how many units are worth taking besides: what will be used while they
// last, and never more than a tenth of the limit.
func (p *pool) block(now time.Duration, s *spec) int64 {
	if !s.leases {
		return 0
	}
	p.mu.Lock()
	n := int64(p.demand.rate * s.hold.Seconds())
	p.mu.Unlock()
	return max(0, min(n, s.most()/10)-p.held(now))
}

// takePending moves what is to be told to the store into an ask.
func (p *pool) takePending(now time.Duration, to []Settlement) []Settlement {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.spec.Load()
	for i := range p.pending {
		next := p.pending[i]
		next.Rule = &s.rule
		next.Windows = s.windows(p.group.fleet.storeTime(now))
		p.demand.asked -= next.Back
		to = append(to, next)
	}
	p.pending = p.pending[:0]
	p.urgent.Store(false)
	return to
}

// call asks the store, and once more with the same ID if it cannot be known what
// became of the first.
func (q *queue) call(sent time.Duration) error {
	f := q.group.fleet
	err := q.try(sent)
	if errors.Is(err, ErrWindow) {
		f.heard(f.clock.Now(), q.ask.Now)
		for i, p := range q.pools {
			p.calendar(f.clock.Now(), p.spec.Load(), &q.ask.Claims[i])
		}
		err = q.try(sent)
	}
	if err != nil && f.failed.Load() == 0 {
		f.fails(f.clock.Now(), err)
		q.ask.Again = true
		err = q.try(sent)
	}
	if err != nil {
		f.fails(f.clock.Now(), err)
		return err
	}
	f.heard(sent, q.ask.Now)
	return nil
}

func (q *queue) try(time.Duration) error {
	f := q.group.fleet
	begin := f.clock.Now()
	var err error
	if f.clock == clock.System {
		q.timer.begin(f.o.Timeout)
		err = f.store.Take(&q.timer, &q.ask)
		q.timer.end()
	} else {
		ctx, cancel := f.clock.WithTimeout(context.Background(), f.o.Timeout, context.DeadlineExceeded)
		err = f.store.Take(ctx, &q.ask)
		cancel()
	}
	if err == nil && len(q.ask.Grants) != len(q.ask.Claims) {
		err = fmt.Errorf("the store answered %d of %d claims", len(q.ask.Grants), len(q.ask.Claims))
	}
	if f.o.Events.Called != nil {
		q.tell(f.clock.Now()-begin, err)
	}
	return err
}

func (q *queue) tell(took time.Duration, err error) {
	q.limits = q.limits[:0]
	e := StoreCall{Group: q.group.name, Calls: len(q.batch), Took: took, Again: q.ask.Again, Err: err}
	for _, p := range q.pools {
		q.limits = append(q.limits, LimitCall{Limit: &p.spec.Load().limit})
	}
	if err == nil {
		e.Granted = q.ask.Granted
		for i := range q.ask.Grants {
			q.limits[i].Units, q.limits[i].Leased = e.Granted*q.ask.Claims[i].Cost, q.ask.Grants[i].Extra
		}
		for i := range q.ask.Settle {
			e.Back += q.ask.Settle[i].Back
		}
	}
	e.Limits = q.limits
	q.group.fleet.o.Events.Called(e)
}

// share gives out what the store has granted.
func (q *queue) share(sent sending, now time.Duration, err error) {
	if err == nil {
		if end, why, ok := q.turning(sent, now); ok {
			q.giveUp()
			q.settleBatch(0)
			q.postpone(now, max(0, end-now), 0, why)
			return
		}
	}
	if err == nil && q.late(sent, now) {
		q.giveUp()
		err = ErrLate
		q.group.fleet.fails(now, err)
	} else if err == nil {
		q.group.fleet.succeeds(now)
	}
	if err != nil {
		keepDebts(now, q.ask.Settle, q.pools)
		q.settleBatch(0)
		return
	}
	for i, p := range q.pools {
		q.hear(i, p, q.ask.Granted, sent, now)
	}
	q.by = q.lasts(sent)
	q.settleBatch(q.ask.Granted)
	if q.lacks = q.ask.Granted < q.ask.Copies; q.ask.Granted > 0 {
		q.askIn = 0
	}
	if q.lacks {
		q.short(now)
	}
}

// late reports whether the answer came too late for one of the limits.
func (q *queue) late(sent sending, now time.Duration) bool {
	for _, p := range q.pools {
		if s := p.spec.Load(); s.late && q.passed(sent, now, s.hold) {
			return q.ask.Granted > 0 || q.leased()
		}
	}
	return false
}

// turning reports whether a calendar window ends too soon for what was granted of it to
// be used, and when that is.
func (q *queue) turning(sent sending, now time.Duration) (end time.Duration, why int, ok bool) {
	for i, p := range q.pools {
		g := &q.ask.Grants[i]
		s := p.spec.Load()
		if s.rule.Shape == Fixed && q.ask.Granted > 0 && g.Paused == 0 && q.passed(sent, now, s.untilReset(g)) {
			end, why, ok = max(end, sent.at+g.Reset), i, true
		}
	}
	return end, why, ok
}

func (q *queue) leased() bool {
	for i := range q.ask.Grants {
		if q.ask.Grants[i].Extra > 0 {
			return true
		}
	}
	return false
}

// giveUp gives back everything that was granted.
func (q *queue) giveUp() {
	for i, p := range q.pools {
		g := &q.ask.Grants[i]
		if n := q.ask.Granted*q.ask.Claims[i].Cost + g.Extra; n > 0 {
			p.settle(Settlement{Back: n, Mark: g.Mark})
		}
	}
}

// keepDebts keeps what must not be lost when a call failed at the instant. What came
// back is lost: given back twice it would be granted twice.
func keepDebts(now time.Duration, settle []Settlement, pools []*pool) {
	for i := range settle {
		s := &settle[i]
		for _, p := range pools {
			if p.key != s.Key || p.spec.Load().rule.Name != s.Rule.Name {
				continue
			}
			p.owe(now, s.Owe)
		}
	}
}

// settleBatch ends the wait of as many as have been granted, in order.
func (q *queue) settleBatch(granted int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for j, w := range q.batch {
		if w.state == granting {
			w.state = waits
		}
		if int64(j) >= granted {
			if w.leaving {
				q.remove(w)
				w.finish(Verdict{})
			}
			continue
		}
		for i := range q.pools {
			w.turns[i] = q.turn(i, granted-1-int64(j))
		}
		q.remove(w)
		w.by = q.by
		w.finish(Verdict{OK: true})
	}
}

// lasts is until when what was granted may be used.
func (q *queue) lasts(sent sending) expiry {
	by := noExpiry
	for i, p := range q.pools {
		switch s := p.spec.Load(); {
		case s.rule.Shape == Fixed:
			by = by.first(sent.expiry(s.untilReset(&q.ask.Grants[i])))
		case s.late:
			by = by.first(sent.expiry(s.hold))
		}
	}
	return by
}

// passed reports whether so long has passed since the store was asked.
func (q *queue) passed(sent sending, now, d time.Duration) bool {
	return sent.expiry(d).passed(now, q.group.fleet.clock)
}

// hear notes what the store said of one limit, and keeps what was leased.
func (q *queue) hear(i int, p *pool, granted int64, sent sending, now time.Duration) {
	c, g, s := &q.ask.Claims[i], &q.ask.Grants[i], p.spec.Load()
	p.hears(sent.at, now, s, *g, c.Windows, q.ask.Now)
	p.mu.Lock()
	p.demand.used(now, granted*c.Cost+g.Extra)
	p.mu.Unlock()
	if g.Extra > 0 {
		until := sent.expiry(s.hold)
		if s.rule.Shape == Fixed { // what is leased dies at the reset
			until = until.first(sent.expiry(s.untilReset(g)))
		}
		p.put(now, g.Extra, until, g.Mark)
	}
}

// turn is what a copy with so many behind it is given of pool i.
func (q *queue) turn(i int, behind int64) Turn {
	c, g := &q.ask.Claims[i], &q.ask.Grants[i]
	var t Turn
	t.Place = g.Mark.Level - (g.Extra+behind*c.Cost)*g.Mark.Step
	t.Low, t.Cost = g.Mark.At, c.Cost
	return t
}

// short says when to ask again after less than what was asked for, and refuses
// those who cannot wait so long.
func (q *queue) short(now time.Duration) {
	var wait, space time.Duration
	why := 0
	for i, p := range q.pools {
		if g := &q.ask.Grants[i]; g.Wait > wait {
			wait, why = g.Wait, i
		}
		if s := p.spec.Load(); s.leases {
			space = max(space, scarceLeast, s.hold/4)
		}
	}
	if q.missing(now) {
		wait, space = 0, q.spacing()
	}
	q.postpone(now, wait, space, why)
}

// postpone lets those who can wait for a limit wait, and refuses the others.
func (q *queue) postpone(now, wait, space time.Duration, why int) {
	wait = max(wait, askAgain)
	q.refuse(now, wait, why)
	q.mu.Lock()
	// A little later than told: all of the fleet was told the same. And not much
	// later than now, as others may give something back.
	q.askIn = min(max(askSoon, 2*q.askIn), askAtLeast)
	soon := min(wait, q.askIn)
	if q.n > 0 { // somebody waits
		soon = min(soon, askAtLeast/4)
	}
	q.next, q.there, q.why = now+max(soon, space)+q.group.fleet.within(soon/16+1), now+wait, why
	q.mu.Unlock()
}
