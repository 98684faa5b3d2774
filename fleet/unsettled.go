package fleet

import (
	"context"
	"errors"
	"slices"
	"time"
)

const (
	// repeatFor is how long after its first sending a request is repeated. The store remembers its response for
	// LaneKeep. After that, a repeat would be a new request.
	repeatFor = LaneKeep * 3 / 4

	mostUnsettled = 256 // requests to repeat, of one group
)

// An unsettled is a request that got no response and for which no call waits any more. Its settlements may be missing
// in the store, and the store may have granted units. It is repeated with the same ID until the store responds, so
// its settlements count once. Then its grant returns. Its lane is not used again: a copy of it that arrives later has
// no effect.
type unsettled struct {
	ask    Ask
	leases []*lease // of its claims, and of its settlements
	tally  []int    // the leases with a tally
	first  sending
}

// handOver makes Run repeat a request of the queue that no call needs any more. A request whose limits begin is not
// repeated: it claims what the process must not use.
func (q *queue) handOver(now time.Duration) {
	q.sure()
	begins := q.takes || slices.ContainsFunc(q.steps, func(s beginStep) bool { return s != beginDone })
	if begins || !q.returns() {
		keepDebts(now, q.ask.Settle, q.leases)
		return
	}
	a := q.ask
	a.Settle, a.Claims, a.Grants = slices.Clone(a.Settle), slices.Clone(a.Claims), nil
	q.group.repeats(&unsettled{ask: a, leases: q.leases, tally: slices.Clone(q.tally), first: q.first})
	q.lane = q.group.fleet.nextID()
}

// returns reports whether the last request contained returned units or claimed a budget. If it was lost or executed
// twice, that would matter for as long as the window of its limits lasts.
func (q *queue) returns() bool {
	return len(q.tally) > 0 || slices.ContainsFunc(q.ask.Settle, func(s Settlement) bool { return s.Back > 0 })
}

// sure records that the last request is being repeated.
func (q *queue) sure() {
	q.mu.Lock()
	q.unsure = false
	q.mu.Unlock()
}

// repeats adds a request to those that Run repeats.
func (g *Group) repeats(u *unsettled) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.unsure = append(g.unsure, u)
}

// collect takes over the requests without a response from the queues in which no call waits.
func (g *Group) collect(now time.Duration) {
	var few [8]*queue
	queues := few[:0]
	g.mu.Lock()
	for _, q := range g.queues {
		queues = append(queues, q)
	}
	g.mu.Unlock()
	queues = slices.DeleteFunc(queues, func(q *queue) bool {
		q.mu.Lock()
		defer q.mu.Unlock()
		idle := q.unsure && !q.asking && q.line.Waiting() == 0
		q.asking = q.asking || idle
		return !idle
	})
	slices.SortFunc(queues, byLane) // so that a simulator's runs repeat
	for _, q := range queues {
		q.handOver(now)
		q.fetched()
	}
}

// settleUnsure repeats the requests without a response, until the store does not respond to one.
func (g *Group) settleUnsure(ctx context.Context, now time.Duration) (err error) {
	g.mu.Lock()
	all := g.unsure
	g.unsure = nil
	g.mu.Unlock()
	for len(all) > 0 && err == nil {
		u := all[0]
		if len(all) > mostUnsettled || u.first.expiry(repeatFor).passed(now, g.fleet.clock) {
			keepDebts(now, u.ask.Settle, u.leases)
		} else if err = u.repeat(ctx, g); err != nil {
			break
		}
		all = all[1:]
	}
	if len(all) > 0 {
		g.mu.Lock()
		g.unsure = append(all, g.unsure...)
		g.mu.Unlock()
	}
	return err
}

// reload writes the rules in force into the request. By a shorter window from before a reload, the store would drop
// units that still count.
func (u *unsettled) reload(now time.Duration) {
	inForce := func(r *Rule, key string) (*lease, *Rule) {
		for _, p := range u.leases {
			if s := p.spec(); p.key == key && s.rule.Name == r.Name && r != &s.rule {
				return p, &s.rule
			}
		}
		return nil, r
	}
	var p *lease
	for i := range u.ask.Settle {
		s := &u.ask.Settle[i]
		if p, s.Rule = inForce(s.Rule, s.Key); p != nil {
			s.Windows = p.spec().windows(p.group.fleet.storeTime(now))
		}
	}
	for i := range u.ask.Claims {
		c := &u.ask.Claims[i]
		if p, c.Rule = inForce(c.Rule, c.Key); p != nil {
			p.calendar(now, p.spec(), c)
		}
	}
}

// repeat sends the request again and returns what the store grants.
func (u *unsettled) repeat(ctx context.Context, g *Group) error {
	a := &u.ask
	a.Again = true
	u.reload(g.fleet.clock.Now())
	err := g.report(ctx, a)
	now := g.fleet.clock.Now()
	if errors.Is(err, ErrWindow) { // the store has not executed it
		g.fleet.heard(now, a.Now)
		for i := range a.Claims {
			if p := u.leases[i%len(u.leases)]; a.Claims[i].Rule == &p.spec().rule {
				p.calendar(now, p.spec(), &a.Claims[i])
			}
		}
		err = g.report(ctx, a)
	}
	if errors.Is(err, ErrWindow) || errors.Is(err, ErrAsk) { // the limit has changed
		keepDebts(now, a.Settle, u.leases)
		return nil
	}
	if err != nil || len(a.Grants) < len(a.Claims) {
		return err
	}
	for k, i := range u.tally {
		c, t := &a.Claims[len(u.leases)+k], &a.Grants[len(u.leases)+k]
		u.leases[i].noteHold(now, c.Rule.Amount-t.Left, a.Granted*c.Cost+t.Extra, t.Mark)
		u.leases[i].unhold(now, t.Extra-a.Grants[i].Extra)
	}
	for i := range a.Claims[:min(len(u.leases), len(a.Claims))] {
		if n := a.Granted*a.Claims[i].Cost + a.Grants[i].Extra; n > 0 {
			u.leases[i].settle(now, Settlement{Back: n, Mark: a.Grants[i].Mark})
		}
	}
	return nil
}
