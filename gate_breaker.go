package weir

import (
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// The breaker counts calls. All attempts of a call share one ticket. Each attempt checks that the ticket is still
// valid, and the breaker receives the outcome of the call. A single attempt counts as a call.
//
// The breaker is the first gate because it is the cheapest, and because a call that is not made must cost no units.
// While the upstream is considered down, the breaker admits one call at a time as a probe.

// A ticket is a call's admission by its breaker. The zero ticket is that of a call which has not asked yet.
type ticket struct {
	breaker *breaker.Breaker
	given   breaker.Ticket
	probe   *Probe // nil unless Run.Probe returned it
	used    bool   // an attempt was made with it
	counted bool   // the breaker has received the outcome of the call
	begun   bool   // the breaker counts the call as a success while the response's body arrives
	cell    int    // index of this core's counters (counter.Pick); negative if none was picked
	beganAt time.Duration
	beganIn int // the cell that has counted it
}

// of sets the breaker of the next attempt. A ticket of another breaker is dropped.
func (t *ticket) of(b *breaker.Breaker) {
	if t.breaker != b {
		t.breaker, t.given, t.used, t.begun = b, breaker.Ticket{}, false, false
	}
}

// ask asks the breaker. A probe's ticket stays valid while the breaker waits for the probe, so that the probe may be
// retried like any other call.
func (t *ticket) ask(now time.Duration) step {
	if t.given.Probe && t.breaker.Waits(now, t.given) {
		return goOn
	}
	given, wait, ok := t.breaker.Admit(now)
	t.used = t.used && given == t.given
	if t.given = given; !ok {
		return no(CircuitOpen, wait)
	}
	return goOn
}

// inVain reports whether the ticket belongs to a probe that left its breaker open. The breaker may also be half-open,
// if the probe took so long that the breaker no longer waits for it.
func (t *ticket) inVain(class outcome.Class) bool {
	if !t.given.Probe {
		return false
	}
	phase := t.breaker.State().Phase
	return phase == breaker.Open || phase == breaker.HalfOpen && class == outcome.Failed
}

// giveBack returns a ticket if no attempt was made with it, and none will be.
func (t *ticket) giveBack(now time.Duration) {
	if t.breaker == nil || t.used {
		return
	}
	if t.given.Probe {
		t.count(now, &outcome.Outcome{Class: outcome.Canceled}, "")
	}
	t.counted = true // for other tickets a canceled call is not counted
}

// begins counts a success until the body of the response has ended. A probe succeeds later: see progresses.
func (t *ticket) begins(now time.Duration, o *outcome.Outcome) {
	if !t.counted && !t.given.Probe && o.Class == outcome.OK {
		t.begun, t.beganAt, t.beganIn = true, now, t.breaker.Begin(t.cell, now, t.given)
	}
}

// proofTime is how long the body of a response must be arriving for a probe to succeed.
const proofTime = time.Second

// progresses reports the success of a probe whose response has been arriving for proofTime.
func (p *Permit) progresses(now time.Duration, o *outcome.Outcome) {
	if now-p.start >= proofTime {
		p.count(now, o, p.name)
	}
}

// A Probe is an attempt on whose outcome an open breaker waits, and admits no other call. It is for callers that know
// that the breaker should not wait any longer, because the attempt's own caller holds it up. It is safe for concurrent
// use.
type Probe struct {
	breaker  *breaker.Breaker
	given    breaker.Ticket
	clock    Clock
	answered atomic.Bool
}

// Probe returns the present attempt as a Probe, or nil if no breaker waits for it.
func (r *Run) Probe() *Probe {
	t := &r.permit.ticket
	if !t.given.Probe || t.counted {
		return nil
	}
	t.probe = &Probe{breaker: t.breaker, given: t.given, clock: r.u.clock}
	return t.probe
}

// Release lets the breaker admit another probe. If this one succeeds after all, that counts.
func (p *Probe) Release() {
	p.breaker.Report(p.clock.Now(), p.given, outcome.Outcome{Class: outcome.Canceled})
}

// Answered states that the upstream has answered with an outcome, and that its caller does not read the rest. The rest
// does not count.
func (p *Probe) Answered(o outcome.Outcome) {
	p.answered.Store(true)
	p.breaker.Report(p.clock.Now(), p.given, o)
}

// count reports the outcome of the call to the breaker, once. caller is the caller's name, "" if unknown.
func (t *ticket) count(now time.Duration, o *outcome.Outcome, caller string) {
	if t.counted {
		return
	}
	t.counted = true
	if t.probe != nil && t.probe.given == t.given && t.probe.answered.Load() {
		return
	}
	if caller != "" {
		t.breaker.Active(now, caller)
	}
	if o.Class == outcome.Rejected && (o.Unsent || o.Code == classify.InvalidRequest) { // refused on this side, which proves nothing to a probe
		o = &outcome.Outcome{Class: outcome.Canceled}
	}
	if t.begun {
		t.begun = false
		t.breaker.End(t.beganIn, now, t.beganAt, t.given, *o, caller)
		return
	}
	switch {
	case o.Own:
		t.breaker.Report(now, t.given, outcome.Outcome{Class: outcome.Canceled})
	case o.Class == outcome.OK:
		t.breaker.GoodIn(t.cell, now, t.given)
	default:
		t.breaker.ReportOf(now, t.given, *o, caller)
	}
}
