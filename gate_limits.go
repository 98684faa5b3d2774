package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// turn takes what the call costs of all limits, or of none, unless somebody waits for it already.
func (p *Permit) turn(now, patience time.Duration) step {
	if p.moved() {
		return step{kind: stepMove}
	}
	if p.u.pauses.Any(now) {
		if s := p.stopped(now); s.wait > 0 {
			return p.askPause(now, s, patience)
		}
	}
	if p.limits.Len() == 0 {
		return goOn
	}
	if !p.u.lines.Empty() && p.behind(now) {
		if patience > 0 {
			return p.standBehind(now, patience)
		}
		return p.askBehind(now)
	}
	if v := p.take(now); !v.OK {
		return p.lacks(now, patience, v)
	}
	return goOn
}

// standBehind has a call stand in the line of the limit for which most wait, unless another one refuses it whatever
// its turn there. What a store has granted does not keep so long as it may stand.
func (p *Permit) standBehind(now, patience time.Duration) step {
	p.handBack(now)
	v := p.limits.Ask(now, int(p.why))
	if v.Why != int(p.why) && v.Wait > patience && !(v.Wait == bucket.Never && p.guessed) {
		return p.judge(now, v)
	}
	return step{kind: stepLine}
}

// lacks is where a call goes on for which there is not enough now: to the store, into a line, or nowhere.
func (p *Permit) lacks(now, patience time.Duration, v limit.Verdict) step {
	switch inTurn := patience > 0 && p.by.fair; {
	case !inTurn && (v.Ask || v.Wait <= patience && p.limits.Charge(v.Why).Registry.Shared()):
		return step{kind: stepStore}
	case v.Wait > patience:
		return p.judge(now, v)
	case v.Ask:
		p.why = -1
	default:
		p.why = int32(v.Why)
	}
	return step{kind: stepLine}
}

// behind reports whether somebody waits for what the call is charged to, and notes
// where most do. What can never be met is nobody's turn.
func (p *Permit) behind(now time.Duration) bool {
	found, most := false, time.Duration(-1)
	for i := range p.limits.Len() {
		c := p.limits.Charge(i)
		switch {
		case c.Cost == 0, p.limits.Holds(i): // the latter since before it asked the store
			continue
		case c.Cost < 0 || c.Cost > c.Registry.Most(now, c.Key):
			return false
		}
		if cost, ok := p.u.lines.Busy(lineKey{c.Registry, c.Key}); ok && cost > most {
			found, most, p.why = true, cost, int32(i)
		}
	}
	return found
}

// askBehind takes what those who wait leave to others, for a call that does not wait.
func (p *Permit) askBehind(now time.Duration) step {
	s := p.newStander(now, &Call{})
	s.at = -1
	d, at := p.u.lines.Try(now, &s.call, func() line.Spot {
		s.at = s.verdict.Why
		return s.spot(now)
	})
	p.limits = s.limits
	switch {
	case d.Kind == line.Go:
		return goOn
	case s.stop.wait > 0:
		return p.askPause(now, s.stop, 0)
	case s.verdict.Ask:
		return step{kind: stepStore}
	case s.over(now):
		return p.roused(now)
	}
	return p.tooLate(now, s, at)
}

// take takes the charges. A guess that has become too much while it waited is cut down.
func (p *Permit) take(now time.Duration) limit.Verdict {
	v := p.limits.Take(now, 0)
	if !v.OK && v.Wait == bucket.Never && p.guessed && p.limits.Fit(now) {
		return p.limits.Take(now, 0)
	}
	return v
}

// judge is the step of limits that say no.
func (p *Permit) judge(now time.Duration, v limit.Verdict) step {
	p.why = int32(v.Why)
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
		d := p.turn(now, max(0, until-now))
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

// An account is what an attempt is charged to, and what its limits said.
type account struct {
	by      *plan        // whose limits those are: that in force when it asked for them
	limits  limit.Permit // what it holds of them
	guessed bool         // what it costs is a guess
	why     int32        // the limit that made it wait or said no, or -1
	lack    limit.Lack
	told    bool          // the limits have heard what the upstream says of them
	held    time.Duration // until when everyone is paused that its answer concerns; 0: nobody
}

// starts tells the limits that the attempt is made.
func (a *account) starts() {
	if a.by.told {
		a.limits.Sent()
	}
}

// cause is the charge to the limit that made the attempt wait, or said no; the zero Charge if none did.
func (a *account) cause() limit.Charge {
	if a.why < 0 {
		return limit.Charge{}
	}
	return a.limits.Charge(int(a.why))
}

// wants is what the limit that said no wanted of the store.
func (a *account) wants(now time.Duration) limit.Want {
	w := a.limits.Lacks(now, int(a.why))
	if a.lack != limit.LacksNothing {
		w.Lack = a.lack
	}
	return w
}

// levels is what all limits look like that the call is charged to.
func (a *account) levels(now time.Duration) []LimitLevel {
	all := make([]LimitLevel, a.limits.Len())
	for i := range all {
		c := a.limits.Charge(i)
		level := a.limits.Look(now, i)
		all[i] = LimitLevel{Rule: c.Registry.Limit().InForce(level), Key: c.Key, Cost: c.Cost, Level: level}
	}
	return all
}
