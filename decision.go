package weir

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// decided counts and reports the decision of the gates. It returns the refusal that it has reported, or nil if it
// made none.
func (w *walk) decided(d step) (told *Refusal) {
	p := w.Permit
	if s := p.by.live.shadow; s != nil && !d.refused() {
		p.understudy = s.try(w.call)
	}
	if p.plan.silent {
		if !d.refused() {
			p.starts()
		}
		return nil
	}
	events := &p.u.options.Events
	by, untold := (*limitTally)(nil), true
	if p.tally != nil {
		by, untold = w.decides(d)
	}
	switch {
	case !d.refused():
		p.starts()
	case untold && events.Refused != nil:
		by.tellRefused(events.Refused, d.event(w.Permit, w.now))
	}
	if events.Recorded != nil {
		p.recorded.decides(p, w.now, d)
	}
	if events.Acquired != nil && !d.refused() {
		w.acquired(events.Acquired)
	}
	if events.Decided == nil {
		return nil
	}
	e := Decided{Subject: w.subject(w.u), Waited: w.waited, Late: w.limits.Late()}
	if c := w.cause(); c.Registry != nil {
		e.Limit = c.Registry.Limit().Name
	}
	if d.refused() {
		e.Refusal = d.refusal(w.Permit, w.now)
	}
	tell(events.Decided, e)
	return e.Refusal
}

// acquired reports what the attempt took from each limit.
func (w *walk) acquired(f func(Acquired)) {
	for s, i := w.subject(w.u), 0; i < w.limits.Len(); i++ {
		c := w.limits.Charge(i)
		tell(f, Acquired{Subject: s, Limit: c.Registry.Limit().Name, Units: c.Cost})
	}
}

// err returns the error of a refusing step. told is its refusal, or nil if none was made yet.
func (s step) err(p *Permit, now time.Duration, told *Refusal) error {
	r := told
	if r == nil {
		r = s.refusal(p, now)
	}
	if s.wait == bucket.Never && s.why == RateLimited && p.why >= 0 {
		if r.Rule.IsBudget() {
			return tooDear(r, p.cause().Cost)
		}
		return fmt.Errorf("%s %s: %w: the call costs %d %s, and limit %s holds at most %d", p.u.name, p.plan.name, ErrTooMuch,
			p.cause().Cost, r.Rule.UnitName(), r.Limit, r.Level.Full+r.Level.HeldBack)
	}
	return r
}

// tellRefused reports a refusal together with the number of suppressed ones, and records until when to suppress more.
// l has the counters of the refusal, nil if it is not counted.
func (l *limitTally) tellRefused(f func(Refused) time.Duration, e Refused) {
	if l == nil {
		tellRefused(f, e)
		return
	}
	i := reasonPlace(e.Reason)
	t := &l.telling[i]
	quiet := t.quiet.Load()
	if quiet != 0 {
		e.Untold = int(l.untold(i))
	}
	if until := int64(tellRefused(f, e)); until != quiet {
		t.quiet.Store(until)
	}
}

// event returns the event of a refusing step. It does not allocate for it.
func (s step) event(p *Permit, now time.Duration) Refused {
	e, c := refused(p, now, s.why), p.cause()
	e.RetryAfter = s.wait
	if c.Registry != nil {
		e.Limit, e.Key = c.Registry.Limit().Name, c.Key
		if s.why == RateLimited || s.why == QuotaExhausted {
			e.Want = p.wants(now)
		}
	}
	if s.why == QuotaExhausted {
		e.ResetAt = s.refusal(p, now).ResetAt()
	}
	return e
}

// refused returns a Refused event with the fields that all reasons have.
func refused(p *Permit, now time.Duration, why Reason) Refused {
	return Refused{Upstream: p.u.name, Operation: p.plan.name, ID: p.id, At: now, Keys: p.keys, Reason: why, Waited: p.waited}
}

// refusal returns the Refusal of a refusing step, which may outlive the permit. It allocates, so it is made only if
// somebody reads it.
func (s step) refusal(p *Permit, now time.Duration) *Refusal {
	r := &Refusal{Upstream: p.u.name, Operation: p.plan.name, Reason: s.why, RetryAfter: s.wait, Place: int(p.place), Waiting: int(p.waiting)}
	c := p.cause()
	if c.Registry != nil {
		if s.why == RateLimited || s.why == QuotaExhausted {
			r.Want = p.wants(now)
		}
		r.Levels = p.levels(now)
		why := r.Levels[p.why]
		r.Limit, r.Key, r.Rule, r.Level = why.Rule.Name, why.Key, why.Rule, why.Level
	}
	if s.why == Paused || s.why == QuotaExhausted {
		r.explain(p, now, c)
	}
	if r.Crowded = s.crowded; s.why == ConcurrencyLimited && !s.crowded {
		look := p.flight.bound.Look(now)
		r.InFlight, r.Bound = look.InFlight, look.Bound
	}
	return r
}

// explain adds to a refusal by a pause what the pause applies to and, for a quota, when it resets if that is known.
// If several pauses hold the call, it describes the one that determined RetryAfter.
func (r *Refusal) explain(p *Permit, now time.Duration, c limit.Charge) {
	var e pause.Entry
	if c.Registry != nil && r.Level.Paused > 0 {
		e = p.u.pauses.In(now, whose(c))
	} else if s := p.stopped(now, false); s.wait > 0 {
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

// decides counts a decision. An admission without a wait only adds to the cell of its core. by has the counters of
// other decisions. tell reports whether to report a refusal.
func (w *walk) decides(d step) (by *limitTally, tell bool) {
	if !d.refused() {
		w.tally.begins(w.sent, w.waited, w.limits.Largest())
		if w.waited == 0 {
			return nil, false
		}
	}
	l := w.plan.tallyBy(w.cause())
	l.waitedFor(w.waited, w.limits.Late())
	if d.refused() {
		tell = l.refuses(w.cell, w.now, d.why)
	} else {
		l.waited.Add(1)
	}
	return l, tell
}
