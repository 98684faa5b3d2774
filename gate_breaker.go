package weir

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// The breaker counts calls. A call has one ticket for all of its attempts: each of
// them asks whether it still holds, and what the breaker hears is how the call ended.
// An attempt whose caller does not say that it is one of several is a call.
//
// It is the first gate since it is the cheapest, and a call that is not made must cost no units of
// a limit. While the upstream is believed to be down one call at a time goes as a probe.

// A ticket is what a call has of its breaker. The zero ticket is that of a call which has not asked yet.
type ticket struct {
	breaker *breaker.Breaker
	given   breaker.Ticket
	used    bool // an attempt was made under it
	counted bool // the breaker has heard how the call ended
	begun   bool // the breaker counts the call as a success while the body of its answer comes
	cell    int  // of counters, that of this core (counter.Pick); below 0 if none was picked
	beganAt time.Duration
	beganIn int // the cell
}

// of makes b the breaker of the next attempt. What another has given says nothing to it.
func (t *ticket) of(b *breaker.Breaker) {
	if t.breaker != b {
		t.breaker, t.given, t.used, t.begun = b, breaker.Ticket{}, false, false
	}
}

// ask asks the breaker. That of a probe is kept while the breaker waits for it:
// a call that probes may take as many attempts as any other, unless nothing succeeds.
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

// inVain reports whether it is that of a probe that ended with a class and left its breaker open: or half-open, where the probe took so
// long that the breaker does not wait for it any more.
func (t *ticket) inVain(class outcome.Class) bool {
	if !t.given.Probe {
		return false
	}
	phase := t.breaker.State().Phase
	return phase == breaker.Open || phase == breaker.HalfOpen && class == outcome.Failed
}

// giveBack hands a ticket back under which no attempt was made, nor will be.
func (t *ticket) giveBack(now time.Duration) {
	if t.breaker == nil || t.used {
		return
	}
	if t.given.Probe {
		t.count(now, &outcome.Outcome{Class: outcome.Canceled}, "")
	}
	t.counted = true // of others the breaker hears nothing that was canceled
}

// begins has the breaker count a success, until the body of the answer has ended. A probe succeeds later: see progresses.
func (t *ticket) begins(now time.Duration, o *outcome.Outcome) {
	if !t.counted && !t.given.Probe && o.Class == outcome.OK {
		t.begun, t.beganAt, t.beganIn = true, now, t.breaker.Begin(t.cell, now, t.given)
	}
}

// proofTime is how long the body of an answer has to come for a probe to have succeeded.
const proofTime = time.Second

// progresses reports a probe whose answer has been coming for long enough.
func (p *Permit) progresses(now time.Duration, o *outcome.Outcome) {
	if now-p.start >= proofTime {
		p.count(now, o, p.name)
	}
}

// count tells the breaker, once, how the call of a caller ended; its name is "" if it is not known.
func (t *ticket) count(now time.Duration, o *outcome.Outcome, caller string) {
	if t.counted {
		return
	}
	t.counted = true
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
