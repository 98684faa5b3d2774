package weir

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// whose is whom a pause of a charge's limit and key holds.
func whose(c limit.Charge) pause.Subject {
	l := c.Registry.Limit()
	return pause.OfLimit(l.Name, l.Scope, c.Key)
}

// Most pauses are of one limit and key: its limiter stands still, and a call that waits for it waits
// in line as for any other amount. What the limiter cannot know is asked here, after the breaker and
// before the limits.

// A stop is a pause that holds a call whatever its limits say. The zero stop holds nobody.
type stop struct {
	pause.Entry
	of     pause.Subject
	charge int // the one that it is about, or -1
	wait   time.Duration
}

// A concern is whom pauses concern: a call by its operation and pool, and by its limits.
type concern struct {
	u          *Upstream
	op, pool   string
	credential string
	caller     string
	probing    time.Duration // the call is a probe of the pause of all credentials, which does not hold it
}

// concern is whom the attempt's pauses are about; it outlasts the permit's report.
func (p *Permit) concern() concern {
	return concern{p.plan.live.u, p.plan.op.Name, p.pool, p.credential, p.name, p.probing}
}

// stopped is the pause that holds the attempt longest, whatever its limits say; or, if all is set,
// that of all pauses: those, too, for which a limiter makes the call wait in its place. The permit
// may have been reported.
func (p *Permit) stopped(now time.Duration, all bool) stop {
	return p.concern().stopped(now, &p.limits, all)
}

// stopped looks for what holds a call longest: a pause of everything, of its operation, of its pool,
// or of one of its limits. A limit's own pause holds it here only if its limiter does not know of it.
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
		if charge.Cost == 0 { // a limit that it costs nothing is none of its business
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

// behind is a subject that concerns the call, if calls rest in its line: they came before. The zero subject if there is none.
func (c concern) behind(limits *limit.Charges) pause.Subject {
	busy := func(of pause.Subject) bool {
		cost, _ := c.u.lines.Busy(of) // 0 if all who stand in it have gone on to ask elsewhere
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

// longer makes s the pause of a subject if that lasts longer than s does.
func (s *stop) longer(u *Upstream, now time.Duration, of pause.Subject, charge int) {
	if e := u.pauses.In(now, of); e.Until()-now > s.wait {
		*s = stop{e, of, charge, e.Until() - now}
	}
}

// held waits for the end of a pause, or refuses. What the limits gave goes back: turns that come
// before the end of the pause would all be used at its end.
func (w *walk) held(s stop) step {
	w.why = int32(s.charge)
	if s.wait <= w.left() {
		w.handBack(w.now)
		return step{kind: stepRest}
	}
	w.undo()
	return w.refusedBy(s)
}

// refusedBy refuses a call that a pause holds. A pause of all credentials may end with the next probe, and so the
// call may ask again then.
func (w *walk) refusedBy(s stop) step {
	if w.credential != "" && s.of == w.all() {
		s.wait = min(s.wait, probeInterval)
	}
	return refusedBy(w.now, &s.Entry, s.wait)
}

// refusedBy is the decision that a pause is for who cannot wait so long.
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

// lifted reports whether the pause is over before its time that the attempt's own answer has
// asked for, and no other holds the call. The permit may have been reported.
func (p *Permit) lifted(now time.Duration) bool {
	return now < p.paused && p.stopped(now, true).wait == 0
}

// pause stops everyone whom the hint concerns. That are all callers of the call's pool
// if it has one, and of those of its limits that are kept by the pool; else all callers
// of the limits that the call was charged to, under its keys. Limits that it cost
// nothing are none of its business.
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
	} else if !charged { // then nobody may call the operation
		u.pauses.pause(now, pause.OfOperation(p.plan.op.Name), "", why, s)
	}
	if !charged {
		e.Pool = p.pool
		tell(u.options.Events.Paused, e)
	}
}

// pauseLimits pauses the limits that a hint concerns, and reports whether there are any.
func (p *Permit) pauseLimits(u *Upstream, now time.Duration, why pause.Reason, s pause.Span, e PauseEvent) (any bool) {
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		if c.Cost == 0 || p.pool != "" && c.Key != p.pool {
			continue
		}
		any = true
		u.pauses.pause(now, whose(c), c.Key, why, s)
		e.Limit, e.Key = c.Registry.Limit().Name, c.Key
		tell(u.options.Events.Paused, e)
	}
	return any
}
