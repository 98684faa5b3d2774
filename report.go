package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/outcome"
)

// Report ends the permit and reports the outcome to every gate. Only the first report counts. For the breaker it ends
// the call; see ReportAgain.
//
// If the outcome has Usage, unused units return to the limits, and additional usage is charged as debt. Without Usage
// the call has used what it was charged. An attempt that was not sent (Unsent) gets all units back, and a failed one its
// dollars. Report does nothing for a refused permit or the zero Permit.
func (p *Permit) Report(o outcome.Outcome) {
	if p.u == nil {
		return
	}
	now := p.ended(&o)
	p.report(now, &o)
	p.count(now, &o, p.name)
	p.limits.Free()
}

// ReportAgain is Report for an attempt that is followed by another attempt of the same call, with its own permit. The
// breaker counts calls, so it waits for the last of them. Only a probe is judged immediately: the breaker admits no
// other call meanwhile, and the next attempt may never come.
func (p *Permit) ReportAgain(o outcome.Outcome) {
	if p.counted = p.counted || !p.given.Probe && o.Class != outcome.OK; p.u != nil {
		p.Report(o)
	}
}

// Answered reports that the response has begun. The rest is a stream and does not count as in flight. The permit must
// still be reported. Answered is unnecessary if the permit is reported when the response begins.
func (p *Permit) Answered() {
	if p.u != nil && p.slot != 0 {
		p.lands(p.u.clock.Now(), p.sent, &outcome.Outcome{Class: outcome.OK})
	}
}

// ended returns the instant of an outcome for the gates. Usage needs the exact instant: a bucket that refilled
// meanwhile would otherwise pay for it.
func (p *Permit) ended(o *outcome.Outcome) time.Duration {
	if p.plan.silent && o.Class == outcome.OK && o.Usage == nil && !p.by.hears && p.slot == 0 {
		return p.u.latest.since(p.sent)
	}
	return p.u.clock.Now()
}

// report reports to every gate except the breaker, which may have to wait for later attempts. The slot is released
// before the limits are settled, because other calls may wait only for it.
func (p *Permit) report(now time.Duration, o *outcome.Outcome) {
	u := p.u
	if u == nil {
		return
	}
	if !p.plan.silent {
		p.observed(now, o)
	}
	if p.slot != 0 {
		p.lands(now, p.sent, o)
	}
	p.u = nil
	p.observe(u, now, o)
	p.end(u, now, o)
}

// reportStart reports the headers of a response whose body follows.
func (p *Permit) reportStart(now time.Duration, o *outcome.Outcome) {
	p.started, p.start = true, now
	if p.slot != 0 {
		p.lands(now, p.sent, o)
	}
	if !o.Own {
		p.begins(now, o)
	}
	p.observe(p.u, now, o)
}

// reportEnd reports what reportStart could not, now that the outcome is known.
func (p *Permit) reportEnd(now time.Duration, o *outcome.Outcome) {
	u := p.u
	if u == nil {
		return
	}
	if !p.plan.silent {
		p.observed(now, o)
	}
	p.u = nil
	if o.Retryable() {
		p.observe(u, now, o)
	}
	p.end(u, now, o)
}

// observe reports an outcome to the holdoff of retries and to adaptive rates, which learn from it.
func (p *Permit) observe(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if !o.Own {
		p.plan.holdoff.Heard(now, o)
	}
	if p.by.hears && !o.Own && !o.Unsent {
		p.learn(u, now, o)
	}
	p.probed(u, now, o)
}

// end settles the limits and reports to the custom gates.
func (p *Permit) end(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if p.understudy != nil {
		p.understudy.ends(o)
	}
	if o.Class != outcome.OK || o.Usage != nil || p.by.settles {
		p.settle(u, now, o)
	}
	if len(p.reports) > 0 {
		p.hear(*o)
	}
}

// took returns how long the attempt took up to the response's body, and how long the body took.
func (p *Permit) took(now time.Duration) (all, body time.Duration) {
	if p.started {
		return p.start - p.sent, max(0, now-p.start)
	}
	return now - p.sent, 0
}

// observed counts, reports and records the end of an attempt.
func (p *Permit) observed(now time.Duration, o *outcome.Outcome) {
	took, _ := p.took(now)
	// The attempt may end on another core than it began on, and each core has a cell.
	if p.tally, p.cell = p.plan.tally(); p.tally != nil {
		p.tally.ends(o, took, p.attempt > 1)
		p.u.counts.erred(now, p.plan.name, o)
	}
	p.tellEnded(now, o)
	if p.u.options.Events.Recorded != nil {
		p.recorded.ends(p, now, o)
	}
}

// tellEnded calls the event functions for the end of an attempt.
func (p *Permit) tellEnded(now time.Duration, o *outcome.Outcome) {
	e, throttled := &p.u.options.Events, o.Class == outcome.Throttled
	rare := e.hearsOf(o.Class)
	if e.Ended != nil || rare != nil {
		took, body := p.took(now)
		about := Ended{Subject: p.subject(p.u), Attempt: int(p.attempt), Outcome: *o, Waited: p.waited, Took: took, Body: body}
		tell(e.Ended, about)
		tell(rare, about)
	}
	if throttled && e.Violated != nil && !o.Own && !o.Unsent && p.limits.Len() > 0 {
		last, amounts := p.u.counts.ago(now)
		tell(e.Violated, Violation{
			Subject: p.subject(p.u), Code: o.Code, Levels: p.levels(now), InFlight: p.u.counts.underWay(), Last: last, Amounts: amounts,
		})
	}
}

// hearsOf returns the event function for attempts of one class; nil if there is none.
func (e *Events) hearsOf(c outcome.Class) func(Ended) {
	switch c {
	case outcome.Throttled:
		return e.Throttled
	case outcome.Rejected:
		return e.Rejected
	}
	return nil
}

// learn reports the outcome to adaptive rates, and the upstream's headers to advertised limits. It wakes waiting
// calls, because a higher rate admits the next one sooner.
func (p *Permit) learn(u *Upstream, now time.Duration, o *outcome.Outcome) {
	defer p.kick(now)
	if p.by.learns && !o.Hint.Quota { // a used-up amount is no evidence about the rate
		p.limits.Learn(now, p.sent, o.Class, p.paced(u, o.Class))
	}
	if p.by.told && !p.told {
		p.told = true
		if p.limits.Tell(now, p.sent, o, p.paced(u, o.Class)) {
			u.lines.Fail(errMoved, func(a line.Asker) bool { return a.(*waiter).unheard }) // now they can know whether their turn comes in time
		}
	}
}

// settle settles the limits with the actual usage, and wakes calls that wait for the returned units. A success that
// used what it was charged needs no settling.
func (p *Permit) settle(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if p.pausedBy(o) {
		p.pause(u, now, o)
	}
	switch o.Class {
	case outcome.OK, outcome.Canceled: // a caller that left may have to pay for its call
	default:
		p.limits.Unbilled(now, o.Usage)
	}
	if o.Unsent {
		p.limits.Drop(now)
	} else {
		p.limits.Settle(now, o.Usage)
	}
	p.kick(now)
}

// paced returns a function that reports each rate changed by the outcome; nil if there is no listener.
func (p *Permit) paced(u *Upstream, class outcome.Class) func(limit.Charge, float64) {
	if u.options.Events.Paced == nil {
		return nil
	}
	about := p.subject(u)
	return func(c limit.Charge, rate float64) {
		tell(u.options.Events.Paced, PaceEvent{about, c.Registry.Limit().Name, c.Key, rate, class})
	}
}
