package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// askLimits takes what the call costs of all limits, or of none.
func (p *Permit) askLimits(now, patience time.Duration) step {
	if p.u.pauses.Any(now) {
		if s := p.stopped(now); s.wait > 0 {
			return p.askPause(now, s, patience)
		}
	}
	if p.limits.Len() == 0 {
		return goOn
	}
	v := p.take(now, patience)
	switch {
	case v.OK && v.Wait == 0:
		return goOn
	case v.Ask:
		return step{kind: stepStore}
	}
	return p.judge(now, v)
}

// take takes the charges.
func (p *Permit) take(now, patience time.Duration) limit.Verdict {
	v := p.limits.Take(now, patience)
	if !v.OK && v.Wait == bucket.Never {
		v = p.refit(now, patience, v)
	}
	return v
}

// refit cuts a guess down that has become too much while it waited, and takes that.
func (p *Permit) refit(now, patience time.Duration, v limit.Verdict) limit.Verdict {
	if p.guessed && p.limits.Fit(now) {
		return p.limits.Take(now, patience)
	}
	return v
}

// judge is the step of a verdict of the limits other than a plain yes.
func (p *Permit) judge(now time.Duration, v limit.Verdict) step {
	p.why = int32(v.Why)
	if v.OK {
		return step{kind: stepWait, wait: v.Wait}
	}
	d := p.deny(now, v)
	p.undo(now)
	return d
}

// fetch asks the store for what is shared with a fleet, waiting for its turn as long
// as patience allows. It says what time it is then.
func (p *Permit) fetch(ctx context.Context, now, patience time.Duration, prio limit.Priority) (step, time.Duration, error) {
	until := later(now, patience)
	for {
		p.u.asks(now)
		v, opened, err := p.fetchLimits(ctx, now, until, prio)
		now = p.u.clock.Now()
		switch {
		case err != nil:
			return step{}, now, err
		case opened:
			if d := p.hears(now); d.refused() {
				return d, now, nil
			}
		case !v.OK:
			return p.judge(now, v), now, nil
		}
		if p.moved() {
			return step{kind: stepMove}, now, nil
		}
		d := p.askLimits(now, max(0, until-now))
		if d.kind != stepStore {
			return d, now, nil
		}
	}
}

// fetchLimits asks the store, unless the breaker opens meanwhile.
func (p *Permit) fetchLimits(ctx context.Context, now, until time.Duration, prio limit.Priority) (v limit.Verdict, opened bool, err error) {
	inner, s, done := p.u.hearing(ctx, p.breaker)
	defer done()
	if s.goesBy(p.charged()); p.moved() {
		return v, true, nil
	}
	if v, err = p.limits.Fetch(inner, now, until, prio); err != nil && ctx.Err() == nil && s.opened.Load() {
		return v, true, nil
	}
	return v, false, err
}

// deny is the step of a verdict that says no.
func (p *Permit) deny(now time.Duration, v limit.Verdict) step {
	c := p.limits.Charge(v.Why)
	p.lack = v.Lack
	d := no(RateLimited, v.Wait)
	switch {
	case v.Wait == bucket.Never: // the cost is at fault
	case c.Registry.Limit().IsQuota() && p.limits.Look(now, v.Why).Left < c.Cost && !p.limits.Lacks(now, v.Why).Away():
		d.why = QuotaExhausted
	case p.limits.Paused(now, v.Why):
		e := p.u.pauses.In(now, whose(c))
		return refusedBy(now, &e, v.Wait)
	}
	return d
}
