package weir

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// decided tells of a decision, and makes the error that goes with a no.
func (p *Permit) decided(now time.Duration, d step) error {
	e, c := Decided{Waited: p.waited, Late: p.limits.Late()}, p.cause()
	if c.Registry != nil {
		e.Limit = c.Registry.Limit().Name
	}
	if d.refused() {
		e.Refusal = p.refusal(now, d, c)
	}
	if p.u.options.Events.Decided != nil {
		e.Subject = p.subject(p.u, p.plan)
		tell(p.u.options.Events.Decided, e)
	}
	switch {
	case !d.refused():
		return nil
	case d.wait == bucket.Never && d.why == RateLimited && p.why >= 0:
		return fmt.Errorf("%s %s: %w: it costs %d %s and limit %s holds %d", p.u.name, p.plan.name, ErrTooMuch,
			c.Cost, e.Refusal.Rule.UnitName(), e.Limit, e.Refusal.Level.Full)
	}
	return e.Refusal
}

// tellRefused tells of a refusal, and makes nothing for it.
func (p *Permit) tellRefused(now time.Duration, d step) {
	if !d.refused() || p.u.options.Events.Refused == nil {
		return
	}
	e, c := p.refusedFor(now, d.why), p.cause()
	e.RetryAfter = d.wait
	if c.Registry != nil {
		e.Limit, e.Key = c.Registry.Limit().Name, c.Key
		if d.why == RateLimited || d.why == QuotaExhausted {
			e.Want = p.wants(now)
		}
	}
	if d.why == QuotaExhausted {
		e.ResetAt = p.refusal(now, d, c).ResetAt()
	}
	tell(p.u.options.Events.Refused, e)
}

// refusedFor is what there is to say of every refusal.
func (p *Permit) refusedFor(now time.Duration, why Reason) Refused {
	return Refused{Upstream: p.u.name, Operation: p.plan.name, ID: p.id, At: now, Keys: p.keys, Reason: why, Waited: p.waited}
}

func (p *Permit) refusal(now time.Duration, d step, c limit.Charge) *Refusal {
	r := &Refusal{Upstream: p.u.name, Operation: p.plan.name, Reason: d.why, RetryAfter: d.wait, Place: int(p.place), Waiting: int(p.waiting)}
	if c.Registry != nil {
		if d.why == RateLimited || d.why == QuotaExhausted {
			r.Want = p.wants(now)
		}
		r.Levels = p.levels(now)
		why := r.Levels[p.why]
		r.Limit, r.Key, r.Rule, r.Level = why.Rule.Name, why.Key, why.Rule, why.Level
	}
	p.explain(now, r, c)
	if d.why == ConcurrencyLimited {
		look := p.flight.bound.Look(now)
		r.InFlight, r.Bound = look.InFlight, look.Bound
	}
	return r
}

// explain says of a refusal by a pause whom the pause holds, and until when if it is a
// quota that says when it comes back.
func (p *Permit) explain(now time.Duration, r *Refusal, c limit.Charge) {
	if r.Reason != Paused && r.Reason != QuotaExhausted {
		return
	}
	var e pause.Entry
	if c.Registry != nil && r.Level.Paused > 0 {
		e = p.u.pauses.In(now, whose(c))
	} else if s := p.stopped(now); s.wait > 0 {
		e = s.Entry
		if s.of.Kind == pause.Pool {
			r.Pool = p.pool
		}
		r.Level.Paused, r.Level.Reset = r.RetryAfter, max(r.Level.Reset, r.RetryAfter)
	}
	if e.Until() > now {
		r.ByHand = e.Reason(now) >= pause.Hand
	}
	if s := &e.Spans[pause.Quota]; r.Level.ResetAt.IsZero() && s.Until > now && s.Known {
		r.Level.ResetAt = p.u.clock.Wall(s.Until)
	}
}

// Levels is what all limits look like that the call is charged to.
func (p *Permit) Levels() []LimitLevel {
	if p.u == nil {
		return nil
	}
	return p.levels(p.u.clock.Now())
}
