package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/outcome"
)

// Report ends the permit: every gate hears how the attempt ended. Only the first
// report counts. To the breaker it is the end of a call; see ReportAgain.
//
// Of what the limits gave, what the outcome's Usage says was not used goes back, and what was used
// beyond is owed; without Usage the call has used what it was charged. An attempt that was never
// sent (Unsent) gets all of it back. A permit that was refused or is the zero Permit has nothing
// to end: its report does nothing.
func (p *Permit) Report(o outcome.Outcome) {
	if p.u == nil {
		return
	}
	now := p.ended(&o)
	p.report(now, &o)
	p.count(now, &o, p.name)
	p.limits.Free()
}

// ReportAgain is Report of an attempt that another attempt of the same call follows,
// under a permit of its own. The breaker counts calls, so it waits for the last of
// them. Only a probe is judged at once: nobody else is let through meanwhile, and
// whether the next attempt comes is not known.
func (p *Permit) ReportAgain(o outcome.Outcome) {
	if p.counted = p.counted || !p.given.Probe && o.Class != outcome.OK; p.u != nil {
		p.Report(o)
	}
}

// Answered says that the answer to the attempt has begun. What is still to come is a
// stream, and no longer counts as in flight; the report is still to come, too. Where an
// attempt is reported when its answer begins, there is no need of it.
func (p *Permit) Answered() {
	if p.u != nil && p.slot != 0 {
		p.lands(p.u.clock.Now(), p.sent, &outcome.Outcome{Class: outcome.OK})
	}
}

// ended is the instant of an outcome, to be told to the gates. Usage is owed from
// the very instant on: a bucket that filled meanwhile would have paid for it.
func (p *Permit) ended(o *outcome.Outcome) time.Duration {
	if p.plan.silent && o.Class == outcome.OK && o.Usage == nil && !p.by.hears && p.slot == 0 {
		return p.u.latest.since(p.sent)
	}
	return p.u.clock.Now()
}

// report tells every gate but the breaker, which may have to hear of later attempts first. The slot
// goes back before the limits are settled: others may wait for nothing else.
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

// reportStart reports the head of an answer whose body is still to come.
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

// reportEnd reports what reportStart has not: the outcome is known.
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

// observe has those learn from an outcome that do: which retries are held back, and which rates change.
func (p *Permit) observe(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if !o.Own {
		p.plan.holdoff.Heard(now, o)
	}
	if p.by.hears && !o.Own && !o.Unsent {
		p.learn(u, now, o)
	}
	p.probed(u, now, o)
}

// end settles the limits, and reports to the gates of the program's own.
func (p *Permit) end(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if o.Class != outcome.OK || o.Usage != nil || p.by.joined {
		p.settle(u, now, o)
	}
	if len(p.reports) > 0 {
		p.hear(*o)
	}
}

// took is how long the attempt took as of now, and of that how long the body of its answer.
func (p *Permit) took(now time.Duration) (all, body time.Duration) {
	if p.started {
		return p.start - p.sent, max(0, now-p.start)
	}
	return now - p.sent, 0
}

// observed has an attempt's end counted, told of and recorded.
func (p *Permit) observed(now time.Duration, o *outcome.Outcome) {
	took, _ := p.took(now)
	// The attempt may end on another core than it began on: there is a cell for each.
	if p.tally, p.cell = p.plan.tally(); p.tally != nil {
		p.tally.ends(o, took, p.attempt > 1)
		p.u.counts.erred(now, p.plan.name, o)
	}
	p.tellEnded(now, o)
	if p.u.options.Events.Recorded != nil {
		p.recorded.ends(p, now, o)
	}
}

// tellEnded tells of an attempt's end.
func (p *Permit) tellEnded(now time.Duration, o *outcome.Outcome) {
	e, throttled := &p.u.options.Events, o.Class == outcome.Throttled
	rare := e.hearsOf(o.Class)
	if e.Ended != nil || rare != nil {
		took, body := p.took(now)
		about := Ended{Subject: p.subject(p.u), Attempt: int(p.attempt), Outcome: *o, Took: took, Body: body}
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

// hearsOf is who hears of attempts of a class apart from all others; nil if nobody does.
func (e *Events) hearsOf(c outcome.Class) func(Ended) {
	switch c {
	case outcome.Throttled:
		return e.Throttled
	case outcome.Rejected:
		return e.Rejected
	}
	return nil
}

// learn tells the rates that learn how the attempt ended, and those that are told what
// the upstream says of them. Calls in line hear of it, since a rate that has grown lets the next go
// sooner.
func (p *Permit) learn(u *Upstream, now time.Duration, o *outcome.Outcome) {
	defer p.kick(now)
	if p.by.learns && !o.Hint.Quota { // that an amount is used up says nothing of the rate
		p.limits.Learn(now, p.sent, o.Class, p.paced(u, o.Class))
	}
	if p.by.told && !p.told {
		p.told = true
		if p.limits.Tell(now, p.sent, o, p.paced(u, o.Class)) {
			u.lines.Fail(errMoved, func(a line.Asker) bool { return a.(*waiter).unheard }) // now they can know whether their turn comes in time
		}
	}
}

// settle tells the limits what really happened, and lets those go on who wait for what came back. A
// success that used what it was charged needs no settling.
func (p *Permit) settle(u *Upstream, now time.Duration, o *outcome.Outcome) {
	if p.pausedBy(o) {
		p.pause(u, now, o)
	}
	if o.Unsent {
		p.limits.Drop(now)
	} else {
		p.limits.Settle(now, o.Usage)
	}
	p.kick(now)
}

// paced tells of each rate that the attempt's outcome has changed; nil if nobody listens.
func (p *Permit) paced(u *Upstream, class outcome.Class) func(limit.Charge, float64) {
	if u.options.Events.Paced == nil {
		return nil
	}
	about := p.subject(u)
	return func(c limit.Charge, rate float64) {
		tell(u.options.Events.Paced, PaceEvent{about, c.Registry.Limit().Name, c.Key, rate, class})
	}
}
