package weir

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

// The breaker counts calls. A call has one ticket for all of its attempts: each of
// them asks whether it still holds, and what the breaker hears is how the call ended.
// An attempt whose caller does not say that it is one of several is a call.

// breakBy makes b the breaker of the next attempt. A ticket of another says nothing to it.
func (p *Permit) breakBy(b *breaker.Breaker) {
	if p.breaker != b {
		p.breaker, p.ticket, p.used = b, breaker.Permit{}, false
	}
}

// askBreaker asks for a ticket. That of a probe is kept while the breaker waits for it:
// a call that probes may take as many attempts as any other, unless nothing succeeds.
func (p *Permit) askBreaker(now time.Duration) step {
	if p.ticket.Probe && p.breaker.Waits(now, p.ticket) {
		return goOn
	}
	t, wait, ok := p.breaker.Admit(now)
	p.used = p.used && t == p.ticket
	if p.ticket = t; !ok {
		return no(CircuitOpen, wait)
	}
	return goOn
}

// giveBack hands a ticket back under which no attempt was made, nor will be.
func (p *Permit) giveBack(now time.Duration) {
	if p.breaker != nil && !p.used {
		p.count(now, &outcome.Outcome{Class: outcome.Canceled})
	}
}

// count tells the breaker, once, how the call ended.
func (p *Permit) count(now time.Duration, o *outcome.Outcome) {
	if p.counted {
		return
	}
	p.counted = true
	switch {
	case o.Own:
		p.breaker.Report(now, p.ticket, outcome.Outcome{Class: outcome.Canceled})
	case o.Class == outcome.OK:
		p.breaker.Good(now, p.ticket)
	default:
		p.breaker.Report(now, p.ticket, *o)
	}
}
