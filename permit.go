package weir

import (
	"context"
	"errors"
	"runtime"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/outcome"
)

// A Permit is the right to make one attempt. It must be reported exactly once,
// whatever becomes of the attempt: one that is dropped keeps what it has been charged, and
// its slot among what is in flight, if that is bounded, until the garbage collector has found
// the permit (for one of Acquire; of Try it does not look for any). It is for one goroutine at a time, and must
// not be copied after its first use.
type Permit struct {
	u       *Upstream // nil once it has been reported
	plan    *plan
	by      *plan  // whose limits it is charged to: the one in force, that is, when it asked for them
	id      string // Call.ID
	op      string // Call.Operation
	keys    map[string]string
	pool    string // Call.Pool
	breaker *breaker.Breaker
	ticket  breaker.Permit // for the call that this is an attempt of
	used    bool           // an attempt was made under the ticket
	counted bool           // the breaker has heard how the call ended
	limits  limit.Permit
	flight  *flight                 // what is in flight; nil if it has no bound
	slot    inflight.Slot           // among that; 0 if it has none
	leashed runtime.Cleanup         // finds the slot of a permit that is dropped; see leash
	drop    func()                  // ends an attempt that goes on without its caller
	reports []func(outcome.Outcome) // of the other gates
	sent    time.Duration
	waited  time.Duration
	held    time.Duration // until when everyone is paused that its answer concerns; 0: nobody
	metered bool          // limits and gates are left to the answer's body; see Meter
	guessed bool          // what it costs is a guess
	told    bool          // the limits have heard what the upstream says of them
	heard   bool          // it was answered, whatever the upstream calls its error
	broken  bool          // its caller's own body kept it from its end
	attempt int32
	why     int32 // the limit that made it wait or said no, or -1
	place   int32 // in line, when it was refused; 0 if it stood in none
	waiting int32 // and how many did
	lack    limit.Lack
}

// A Decision is the answer to whether an attempt may be made now.
type Decision struct {
	Allowed    bool
	Reason     Reason        // why not
	RetryAfter time.Duration // how long to wait before asking again; bucket.Never if the cost can never be met
}

// Try asks for one attempt without waiting. If it is allowed, p is the permit:
// the caller makes the attempt and reports how it ended. p may be the zero
// Permit or one that has been reported; it is the caller's, so that a decision
// allocates nothing. Gates besides breaker and limits are not asked: they may
// wait.
func (u *Upstream) Try(c Call, p *Permit) Decision {
	if u.pauses.Unmet() {
		_ = u.meet(context.Background(), 0) // a context that does not end
	}
	now := u.clock.Now()
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	d := p.ask(now, 0, &c)
	for d.Allowed && d.RetryAfter != 0 {
		if d.RetryAfter == askStore {
			d, now, _ = p.fetch(context.Background(), now, 0, c.Priority) // a context that does not end
		} else {
			d = p.moves(now, 0, &c)
		}
	}
	if d.Allowed && !p.enter(now) {
		d = p.full(now)
	}
	if u.options.Events.Decided != nil {
		_ = p.decided(now, d)
	}
	if !d.Allowed {
		p.u = nil
		return d
	}
	p.starts(now)
	return d
}

// Acquire asks for one attempt and waits for its turn, as long as ctx and the
// policy's longest wait allow. The caller makes the attempt and reports how it
// ended. The error is a *Refusal, or the cause of ctx's end.
func (u *Upstream) Acquire(ctx context.Context, c Call) (*Permit, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := new(Permit)
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	until := bucket.Never
	if at, ok := u.clock.Deadline(ctx); ok {
		until = at
	}
	if err := p.admit(ctx, u.clock.Now(), until, &c); err != nil {
		return nil, err
	}
	p.leash()
	return p, nil
}

// Allowed is the instant, of the upstream's clock, at which the attempt was allowed: the
// limits hold by these instants, however much later the caller goes on.
func (p *Permit) Allowed() time.Duration { return p.sent }

// starts notes that the attempt is made now.
func (p *Permit) starts(now time.Duration) {
	if p.by.told {
		p.limits.Sent()
	}
	if p.u.options.Events.Violated != nil {
		p.u.lately.starts(now)
	}
}

// begin makes p that of an attempt. The ticket of a call goes on to its next attempt.
func (p *Permit) begin(u *Upstream, plan *plan, c *Call, attempt int32) {
	p.u, p.plan, p.by, p.id, p.op, p.keys, p.attempt, p.why, p.waited = u, plan, plan, c.ID, c.Operation, c.Keys, attempt, -1, 0
	p.flight = plan.flight
	if attempt == 1 {
		p.breaker, p.used, p.counted = nil, false, false
	}
	if p.pool = c.Pool; len(p.pool) > longestKey {
		p.pool = tame(p.pool)
	}
	p.reports, p.metered, p.told, p.heard, p.broken, p.guessed = p.reports[:0], false, false, false, false, c.Estimated
	p.limits.Reset()
	p.place, p.waiting, p.slot, p.drop, p.lack, p.held = 0, 0, 0, nil, limit.LacksNothing, 0
}

// ask asks the breaker and then all limits together. If the answer is yes with a
// wait, it has to be asked again after that.
func (p *Permit) ask(now, patience time.Duration, c *Call) Decision {
	p.sent = now
	p.u.decides(now)
	p.breakBy(p.plan.breakerFor(now, c))
	if d, ok := p.askBreaker(now); !ok {
		return d
	}
	if v := p.u.live.Load(); v != p.by.live { // since the call began, or while it waited
		p.by = v.plan(c)
	}
	p.charge(now, c)
	if !p.by.fair {
		return p.askLimits(now, patience)
	}
	return p.turn(now, patience)
}

func (p *Permit) askLimits(now, patience time.Duration) Decision {
	if p.u.pauses.Any(now) {
		if s := p.stopped(now); s.wait > 0 {
			return p.askPause(now, s, patience)
		}
	}
	if p.limits.Len() == 0 {
		return Decision{Allowed: true}
	}
	v := p.take(now, patience)
	switch {
	case v.OK && v.Wait == 0:
		return Decision{Allowed: true}
	case v.Ask:
		return Decision{Allowed: true, RetryAfter: askStore}
	}
	return p.judge(now, v)
}

// take takes the charges.
func (p *Permit) take(now, patience time.Duration) limit.Verdict {
	v := p.limits.Take(now, patience)
	if !v.OK && v.Wait == bucket.Never {
		v = p.refit(now, patience, v)
	}
	return v
}

// refit cuts a guess down that has become too much while it waited, and takes that.
func (p *Permit) refit(now, patience time.Duration, v limit.Verdict) limit.Verdict {
	if p.guessed && p.limits.Fit(now) {
		return p.limits.Take(now, patience)
	}
	return v
}

// judge is the decision that a verdict of the limits other than yes is.
func (p *Permit) judge(now time.Duration, v limit.Verdict) Decision {
	p.why = int32(v.Why)
	if v.OK {
		return Decision{Allowed: true, RetryAfter: v.Wait}
	}
	d := p.no(now, v)
	p.undo(now)
	return d
}

// askStore, as what a decision asks to wait for, means that nothing said no but that
// the store has to be asked: see fetch.
const askStore time.Duration = -1

// fetch asks the store for what is shared with a fleet, waiting for its turn as long
// as patience allows. It says what time it is then.
func (p *Permit) fetch(ctx context.Context, now, patience time.Duration, prio limit.Priority) (Decision, time.Duration, error) {
	until := later(now, patience)
	for {
		p.u.asks(now)
		v, opened, err := p.fetchLimits(ctx, now, until, prio)
		now = p.u.clock.Now()
		switch {
		case err != nil:
			return Decision{}, now, err
		case opened:
			if d := p.hears(now); !d.Allowed {
				return d, now, nil
			}
		case !v.OK:
			return p.judge(now, v), now, nil
		}
		if p.moved() {
			return Decision{Allowed: true, RetryAfter: elsewhere}, now, nil
		}
		d := p.askLimits(now, max(0, until-now))
		if d.RetryAfter != askStore {
			return d, now, nil
		}
	}
}

// fetchLimits asks the store, unless the breaker opens meanwhile.
func (p *Permit) fetchLimits(ctx context.Context, now, until time.Duration, prio limit.Priority) (v limit.Verdict, opened bool, err error) {
	inner, s, done := p.u.hearing(ctx, p.breaker)
	defer done()
	if s.goesBy(p.charged()); p.moved() {
		return v, true, nil
	}
	if v, err = p.limits.Fetch(inner, now, until, prio); err != nil && ctx.Err() == nil && s.opened.Load() {
		return v, true, nil
	}
	return v, false, err
}

// no is the decision that a verdict is which says no.
func (p *Permit) no(now time.Duration, v limit.Verdict) Decision {
	c, level := p.limits.Charge(v.Why), p.limits.Look(now, v.Why)
	p.lack = v.Lack
	d := Decision{Reason: RateLimited, RetryAfter: v.Wait}
	switch {
	case v.Wait == bucket.Never: // the cost is at fault
	case c.Registry.Limit().IsQuota() && level.Left < c.Cost && !p.limits.Lacks(now, v.Why).Away():
		d.Reason = QuotaExhausted
	case level.Paused > 0:
		e := p.u.pauses.In(now, whose(c))
		return refusedBy(now, &e, v.Wait)
	}
	return d
}

// undo hands back what the gates gave: the attempt is not made.
func (p *Permit) undo(now time.Duration) {
	p.limits.Drop(now)
	p.exit()
	p.giveBack(now)
	for _, report := range p.reports {
		report(outcome.Outcome{Class: outcome.Canceled})
	}
	p.reports = nil
}

// nap is how long a call that waits for a turn sleeps at most before it looks whether it may
// go sooner: something may have come back, or a rate have learnt, of which nobody is told.
const nap = time.Second

// Who comes when the open time of a fleet's breaker is over waits a little for the
// lease of the one probe, in place of being told to come again so soon.
const (
	leaseWait = 100 * time.Millisecond
	leaseAsks = 3
)

// admit passes every gate, waiting for its turn until the instant at most.
func (p *Permit) admit(ctx context.Context, now, until time.Duration, c *Call) error {
	start := now
	if p.attempt > 1 && p.u.drains.Load() {
		return p.decided(now, Decision{Reason: ShuttingDown, RetryAfter: soon})
	}
	if p.u.pauses.Unmet() {
		err := p.u.meet(ctx, p.patience(now, until))
		now = p.u.clock.Now()
		if p.waited = now - start; err != nil {
			if !tooLate(ctx, now, until) {
				return err
			}
			p.lack = limit.LacksStore
			return p.decided(now, Decision{Reason: RateLimited, RetryAfter: soon})
		}
	}
	d := p.ask(now, p.patience(now, until), c)
	for range leaseAsks {
		if d.Allowed || d.Reason != CircuitOpen || p.u.options.Fleet == nil || d.RetryAfter > leaseWait || d.RetryAfter > p.patience(now, until) {
			break
		}
		err := p.u.clock.Sleep(ctx, d.RetryAfter)
		now = p.u.clock.Now()
		if p.waited = now - start; err != nil && !tooLate(ctx, now, until) {
			return err
		}
		if err != nil {
			break
		}
		d = p.ask(now, p.patience(now, until), c)
	}
	d, now, err := p.waits(ctx, d, now, min(until, later(start, p.longest())), min(until, later(start, p.plan.live.slotWait)), c)
	if p.waited = now - start; err != nil {
		if !tooLate(ctx, now, until) {
			p.undo(now)
			return err
		}
		d = p.tooSlow(now)
	}
	p.sent = now
	if d.Allowed && len(p.u.options.Gates) > 0 {
		var err error
		if d, err = p.askGates(ctx, now, *c); err != nil {
			return err
		}
	}
	if d.Allowed {
		p.starts(p.sent)
	}
	if d.Allowed && p.u.options.Events.Decided == nil {
		return nil
	}
	return p.decided(now, d)
}

// tooLate reports whether a wait has ended because the call's own deadline has passed.
func tooLate(ctx context.Context, now, until time.Duration) bool {
	return now >= until && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// reconsider asks the breaker again after a wait: what opened meanwhile must not
// be called, and a ticket of an older generation would count for nothing. Nor is a call made
// that has waited while the upstream drains.
func (p *Permit) reconsider(now time.Duration) Decision {
	d, ok := p.askBreaker(now)
	if ok && p.u.drains.Load() {
		p.giveBack(now)
		d, ok = Decision{Reason: ShuttingDown, RetryAfter: soon}, false
	}
	if !ok {
		p.limits.Drop(now)
		p.why = -1
		return d
	}
	return Decision{Allowed: true}
}

func (p *Permit) askGates(ctx context.Context, now time.Duration, c Call) (d Decision, err error) {
	admitted := false
	defer func() { // also if a gate panics
		if !admitted {
			p.undo(now)
		}
	}()
	inner, opens, done := p.u.hearing(ctx, p.breaker)
	defer done()
	for _, g := range p.u.options.Gates {
		report, err := g.Admit(inner, c)
		if err != nil && opens.opened.Load() && ctx.Err() == nil {
			if d = p.reconsider(p.u.clock.Now()); !d.Allowed {
				return d, nil
			}
		}
		if err != nil {
			p.gateRefused(err)
			return d, err
		}
		if report != nil {
			p.reports = append(p.reports, report)
		}
	}
	admitted = true
	if p.sent = p.u.clock.Now(); p.sent == now {
		return Decision{Allowed: true}, nil
	}
	if d = p.reconsider(p.sent); !d.Allowed {
		admitted = false
		return d, nil
	}
	if s := p.stoppedBy(p.sent, true); s.wait > 0 { // it began while the gates waited
		return p.askPause(p.sent, s, 0), nil
	}
	return d, nil
}

func (p *Permit) longest() time.Duration { return max(0, p.plan.live.policy.MaxWait) }

// patience is how long the call may wait for a turn.
func (p *Permit) patience(now, until time.Duration) time.Duration {
	return max(0, min(p.longest(), until-now))
}
