package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A part of an exchange, such as a message of a connection that was admitted when it began, is charged to limits and held by
// pauses as any other call, and none is sent while the breaker is open. But how long it takes to be sent, and that it
// could be, says nothing of how the upstream works: it is no probe, it takes no slot of what is in flight, and the
// breaker does not hear of it.

// Admit is Acquire for those who have a permit of their own, so that it allocates nothing, and say themselves how long the
// attempt waits for a limit: patience at most, in place of the policy's MaxWait; 0 waits for none. p may be the zero
// Permit or one that has been reported. If the attempt is allowed, it must be reported; c and its maps must not be changed until then.
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

// askBreaker asks the breaker whether the attempt may be made. Of a part of an exchange it is only looked whether it lets nobody
// through, and the permit has none: who waits for a limit is not woken when it opens, but looks again.
func (w *walk) askBreaker() step {
	b := w.plan.breakerFor(w.now, w.call)
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
	return w.ticket.ask(w.now)
}
