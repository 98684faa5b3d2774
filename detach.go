package weir

import "github.com/seed1158cd35/weir/outcome"

// Detach leaves to p what the present attempt holds of limits and of gates of the program's own.
// It is for answers that know only at their end what was used, as streams do: breaker and
// rates that learn hear of the attempt by its report, and p is reported when the answer has
// ended. A class of failed or throttled then counts against the upstream although the attempt
// has been counted as a success already.
func (r *Run) Detach(p *Permit) {
	*p = r.permit
	p.told, p.detached = true, true // by r.permit
	r.permit.metered = true
}

// settled ends a permit whose attempt has been reported: what is left of it are the
// limits and the gates of the program's own.
func (p *Permit) settled(o outcome.Outcome) {
	u := p.u
	now := u.clock.Now()
	if u.options.Events.Metered != nil {
		tell(u.options.Events.Metered, Ended{Subject: p.subject(u, p.plan), Attempt: int(p.attempt), Outcome: o, Took: now - p.sent})
	}
	p.u = nil
	if o.Class == outcome.Failed || o.Class == outcome.Throttled {
		p.breaker.Report(now, p.given, o)
		p.learn(u, now, &o)
	}
	p.settle(u, now, &o)
	p.hear(o)
}
