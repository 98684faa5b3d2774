package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Permit is the right to make one attempt. It must be reported exactly once,
// whatever becomes of the attempt: one that is dropped keeps what it has been charged, and
// its slot among what is in flight, if that is bounded, until the garbage collector has found
// the permit (for one of Acquire; of Try it does not look for any). It is for one goroutine at a time, and must
// not be copied after its first use.
type Permit struct {
	u     *Upstream // nil once it has been reported
	plan  *plan
	tally *tally        // where it is counted; nil if it is not
	sent  time.Duration // the instant at which it was allowed

	caller   // whose call it is
	standing // what it waited for its turn
	ticket   // of the breaker, for the call that this is an attempt of
	account  // with the limits
	berth    // among what is in flight
	hearers  // of the outcome, beside those
}

// A standing is what an attempt waited for its turn, and where.
type standing struct {
	waited  time.Duration
	place   int32 // in line, when it was refused; 0 if it stood in none
	waiting int32 // and how many did
}

// A Decision is the answer to whether an attempt may be made now. Most callers want Acquire or Do,
// which wait; a Decision is for those who answer somebody else. The zero Decision is a no.
type Decision struct {
	Allowed    bool
	Reason     Reason        // why not
	RetryAfter time.Duration // how long to wait before asking again; bucket.Never if the cost can never be met
}

// Try asks for one attempt and waits for no turn; where a fleet shares limits it may wait for an
// answer of the store, for fractions of a second. If the attempt is allowed, p is the permit:
// the caller makes the attempt and reports how it ended. p may be the zero
// Permit or one that has been reported; it is the caller's, so that a decision
// allocates nothing. Gates besides breaker and limits are not asked: they may
// wait.
func (u *Upstream) Try(c Call, p *Permit) Decision {
	if u.pauses.Unmet() {
		_ = u.pauses.meet(context.Background(), 0) // a context that does not end
	}
	now := u.clock.Now()
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	w := walk{Permit: p, call: &c, now: now, until: now}
	d := w.ask()
	for d.waits() {
		if d.kind == stepStore {
			d, _ = w.fetch(context.Background()) // a context that does not end
		} else {
			d = w.moves()
		}
	}
	if !d.refused() && !p.enter(w.now, p.given.Probe) {
		d = w.full()
	}
	p.sent = w.now
	_ = w.decided(d)
	if d.refused() {
		p.u = nil
		return Decision{Reason: d.why, RetryAfter: d.wait}
	}
	return Decision{Allowed: true}
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

// Levels is what all limits look like that the call is charged to; nil once the attempt has been reported.
func (p *Permit) Levels() []LimitLevel {
	if p.u == nil {
		return nil
	}
	return p.levels(p.u.clock.Now())
}

// subject says whose an event of the attempt is. It is made only where somebody listens.
func (p *Permit) subject(u *Upstream) Subject { return subject(u, p.plan, p.id, p.keys) }

// begin makes p that of an attempt. The ticket of a call goes on to its next attempt.
func (p *Permit) begin(u *Upstream, plan *plan, c *Call, attempt int32) {
	p.u, p.plan, p.by, p.id, p.op, p.keys, p.attempt, p.why, p.waited = u, plan, plan, c.ID, c.Operation, c.Keys, attempt, -1, 0
	p.flight, p.tally = plan.flight, plan.tally()
	if attempt == 1 {
		p.breaker, p.used, p.counted = nil, false, false
	}
	if p.pool = c.Pool; len(p.pool) > longestKey {
		p.pool = boundedKey(p.pool)
	}
	p.reports, p.metered, p.detached, p.told, p.heard, p.broken, p.guessed = p.reports[:0], false, false, false, false, false, c.Estimated
	p.limits.Reset()
	p.place, p.waiting, p.slot, p.drop, p.lack, p.paused = 0, 0, 0, nil, limit.LacksNothing, 0
}
