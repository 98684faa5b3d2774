package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A part of an exchange, such as a message of a connection, is charged to limits and held by pauses like any other
// call. It is not sent while the breaker is open. But the time to send it, and the success of sending, are no
// evidence about the upstream. Therefore it is no probe, takes no slot, and the breaker does not count it.

// Admit is Acquire for callers that have a Permit, so that it does not allocate, and that choose how long the attempt
// waits for a limit: at most patience, instead of the policy's MaxWait. 0 means no wait. p may be the zero Permit or
// a reported one. An allowed attempt must be reported. Until then c and its maps must not be changed.
func (u *Upstream) Admit(ctx context.Context, c *Call, p *Permit, patience time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	p.begin(u, u.live.Load().plan(c), c, 1)
	until := bucket.Never
	if at, ok := u.clock.Deadline(ctx); ok {
		until = at
	}
	now := u.clock.Now()
	p.recorded.begins(p, u, p.plan, c, now, false)
	err := p.admit(ctx, now, until, max(0, patience), c)
	if err != nil {
		if u.options.Events.Recorded != nil {
			p.recorded.left(p, u.clock.Now(), err)
		}
		p.u = nil
		p.limits.Free()
	}
	return err
}

// askBreaker asks the breaker. A part of an exchange gets no ticket: askBreaker only reads whether the breaker is
// open. So a part that waits for a limit is not woken when the breaker opens, but checks again.
func (w *walk) askBreaker() step {
	b := w.plan.breakerFor(w.now, w.call)
	if w.call.Caller != "" { // also if it then waits behind calls of a caller that fail
		b.Active(w.now, w.call.Caller)
	}
	if !w.call.Part {
		w.ticket.of(b)
		return w.ticket.ask(w.now)
	}
	if at := b.Look(w.now); at.Phase == breaker.Open && at.Wait > 0 {
		return no(CircuitOpen, at.Wait)
	}
	return goOn
}

// hearsBreaker asks the attempt's breaker again.
func (w *walk) hearsBreaker() step {
	if w.call.Part {
		return w.askBreaker()
	}
	if w.call.Caller != "" {
		w.ticket.breaker.Active(w.now, w.call.Caller)
	}
	return w.ticket.ask(w.now)
}
