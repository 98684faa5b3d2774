package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// whose returns the subject of a pause of a charge's limit and key.
func whose(c limit.Charge) pause.Subject {
	l := c.Registry.Limit()
	return pause.OfLimit(l.Name, l.Scope, c.Key)
}

// Most pauses are of one limit and key. Their limiter is paused, and calls wait in its queue as for units. Pauses
// that a limiter cannot represent are checked here, after the breaker and before the limits.

// A stop is a pause that holds a call independently of its limits. The zero stop holds no call.
type stop struct {
	pause.Entry
	of     pause.Subject
	charge int // index of the charge that it is about, or -1
	wait   time.Duration
}

// A concern identifies a call for pauses, by operation, pool and credential. Its limits are passed separately.
type concern struct {
	u          *Upstream
	op, pool   string
	credential string
	caller     string
	probing    time.Duration // end of the pause of all credentials that the call probes, which does not hold it; 0 if none
}

// concern returns the permit's concern. It stays valid after the permit's report.
func (p *Permit) concern() concern {
	return concern{p.plan.live.u, p.plan.op.Name, p.pool, p.credential, p.name, p.probing}
}

// stopped returns the longest pause that holds the attempt independently of its limits. If all is set, it also
// considers pauses for which a limiter makes the call wait. The permit may have been reported.
func (p *Permit) stopped(now time.Duration, all bool) stop {
	return p.concern().stopped(now, &p.limits, all)
}

// stopped returns the longest pause of everything, of the call's operation, of its pool, or of one of its limits. It
// considers a limit's pause only if the limiter does not know it, or if all is set.
func (c concern) stopped(now time.Duration, limits *limit.Charges, all bool) stop {
	s, u := stop{charge: -1}, c.u
	if !u.pauses.Any(now) {
		return s
	}
	s.longer(u, now, pause.All(), -1)
	s.longer(u, now, pause.OfOperation(c.op), -1)
	if c.pool != "" {
		s.longer(u, now, pause.OfPool(c.pool), -1)
	}
	if c.credential != "" && c.probing == 0 {
		s.longer(u, now, c.all(), -1)
	}
	for i := range limits.Len() {
		charge := limits.Charge(i)
		if charge.Cost == 0 { // the limit does not apply
			continue
		}
		of := whose(charge)
		if of.Kind == pause.Key {
			s.longer(u, now, pause.OfLimits(of.Name), i)
		}
		if all || limits.Look(now, i).Paused == 0 {
			s.longer(u, now, of, i)
		}
	}
	return s
}

// behind returns a pause that applies to the call and for which earlier calls wait. It returns the zero subject if
// none.
func (c concern) behind(limits *limit.Charges) pause.Subject {
	busy := func(of pause.Subject) bool {
		cost, _ := c.u.lines.Busy(of) // 0 if all its calls have moved to other queues
		return cost > 0
	}
	switch all, op, pool := pause.All(), pause.OfOperation(c.op), pause.OfPool(c.pool); {
	case busy(all):
		return all
	case busy(op):
		return op
	case c.pool != "" && busy(pool):
		return pool
	case c.credential != "" && c.probing == 0 && busy(c.all()):
		return c.all()
	}
	for i := range limits.Len() {
		if charge := limits.Charge(i); charge.Cost > 0 {
			of := whose(charge)
			if busy(of) {
				return of
			}
			if of = pause.OfLimits(of.Name); busy(of) {
				return of
			}
		}
	}
	return pause.Subject{}
}

// longer replaces s by the pause of a subject if that lasts longer.
func (s *stop) longer(u *Upstream, now time.Duration, of pause.Subject, charge int) {
	if e := u.pauses.In(now, of); e.Until()-now > s.wait {
		*s = stop{e, of, charge, e.Until() - now}
	}
}

// held makes the call wait for the end of a pause, or refuses it. It first returns the units: otherwise those granted
// during the pause would all be used at its end.
func (w *walk) held(s stop) step {
	w.why = int32(s.charge)
	if s.wait <= w.left() {
		w.handBack(w.now)
		return step{kind: stepRest}
	}
	w.undo()
	return w.refusedBy(s)
}

// refusedBy refuses a call that a pause holds. A pause of all credentials may end with the next probe, so RetryAfter
// is at most the time until then.
func (w *walk) refusedBy(s stop) step {
	if w.credential != "" && s.of == w.all() {
		s.wait = min(s.wait, probeInterval)
	}
	return refusedBy(w.now, &s.Entry, s.wait)
}

// refusedBy returns the refusal by a pause.
func refusedBy(now time.Duration, e *pause.Entry, wait time.Duration) step {
	d := no(Paused, wait)
	if e.Until() > now && e.Reason(now) == pause.Quota {
		d.why = QuotaExhausted
	}
	if e.Open() {
		d.wait = Never
	}
	return d
}

// lifted reports whether the pause that the attempt's response has caused ended early, and no other pause holds the
// call. The permit may have been reported.
func (p *Permit) lifted(now time.Duration) bool {
	return now < p.paused && p.stopped(now, true).wait == 0
}

// pause applies a hint. If the call has a pool, it pauses the pool, and each limit of the call whose key is the pool.
// Otherwise it pauses the limits that the call was charged to, under its keys. Limits with a cost of 0 are not
// affected.
func (p *Permit) pause(u *Upstream, now time.Duration, o *outcome.Outcome) {
	longest, asked, why := p.plan.live.policy.MaxPause, o.Hint.After, pause.Rate
	if o.Hint.Quota {
		why = pause.Quota
	}
	if !o.Hint.Said {
		asked = longest
	} else if o.Hint.Quota {
		longest = pause.Longest
	}
	until := later(now, min(asked, longest))
	p.paused = until
	s := pause.Span{Until: until, Known: o.Hint.Said}
	e := PauseEvent{Subject: p.subject(u), Hint: o.Hint.After, For: until - now, Code: o.Code, By: ByHint}
	charged := p.pauseLimits(u, now, why, s, e)
	if p.credential != "" {
		p.pauseAll(u, now, until, e)
	}
	if p.pool != "" {
		u.pauses.pause(now, pause.OfPool(p.pool), p.pool, why, s)
	} else if !charged { // then the operation is paused
		u.pauses.hints.noteEarly(pause.OfOperation(p.plan.op.Name))
		u.pauses.pause(now, pause.OfOperation(p.plan.op.Name), "", why, s)
	}
	if !charged {
		e.Pool = p.pool
		tell(u.options.Events.Paused, e)
	}
}

// pauseLimits pauses the limits to which a hint applies, and reports whether there are any.
func (p *Permit) pauseLimits(u *Upstream, now time.Duration, why pause.Reason, s pause.Span, e PauseEvent) (any bool) {
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		if c.Cost == 0 || p.pool != "" && c.Key != p.pool {
			continue
		}
		any = true
		if p.credential == "" {
			u.pauses.hints.noteEarly(whose(c))
		}
		u.pauses.pause(now, whose(c), c.Key, why, s)
		e.Limit, e.Key = c.Registry.Limit().Name, c.Key
		tell(u.options.Events.Paused, e)
	}
	return any
}
