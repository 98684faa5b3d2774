package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// The limits are asked all together: walk.turn takes what the call costs of each of them, or of
// none. A call that cannot have it now holds nothing while it waits, and stands in the line of one
// limit, that with the longest wait; when its turn comes there it asks all of them again. Which
// amount is left is package limit's to know, by GCRA for buckets; who goes next is package line's.

// behind reports whether somebody waits for what the call is charged to, and notes
// where most do. What can never be met is nobody's turn.
func (w *walk) behind() bool {
	found, most := false, time.Duration(-1)
	for i := range w.limits.Len() {
		c := w.limits.Charge(i)
		switch {
		case c.Cost == 0, w.limits.Holds(i): // the latter since before it asked the store
			continue
		case c.Cost < 0 || c.Cost > c.Registry.Most(w.now, c.Key):
			return false
		}
		if cost, ok := w.u.lines.Busy(lineOf(w.now, c)); ok && cost > most {
			found, most, w.why = true, cost, int32(i)
		}
	}
	return found
}

// stepBehind has a call stand in the line of the limit for which most wait, unless another one refuses it whatever
// its turn there. What a store has granted does not keep so long as it may stand.
func (w *walk) stepBehind() step {
	if w.left() == 0 {
		return w.askBehind()
	}
	w.handBack(w.now)
	v := w.limits.Ask(w.now, int(w.why))
	if v.Why != int(w.why) && w.limits.Soonest(v.Why, v.Wait) > w.left() && !(v.Wait == bucket.Never && w.guessed) && !mayRise(w.now, &w.limits, v) {
		return w.judge(v)
	}
	return step{kind: stepLine}
}

// askBehind takes what those who wait leave to others, for a call that does not wait. It says how long the
// call would have waited at the end of the line.
func (w *walk) askBehind() step {
	s := w.newWaiter(&Call{})
	s.at = -1
	d, at := w.u.lines.Try(w.now, &s.call, func() line.Spot {
		s.at = s.verdict.Why
		return s.spot(w.now)
	})
	w.limits = s.limits
	switch {
	case d.Kind == line.Go:
		return goOn
	case s.stop.wait > 0:
		return w.held(s.stop)
	case s.verdict.Ask:
		return step{kind: stepStore}
	case s.over(w.now):
		return w.roused()
	}
	return w.tooLate(s, at)
}

// lacks is where a call goes on for which there is not enough now: to the store, into a line, or nowhere.
// To the store goes who lacks what a fleet shares, and whose policy is not fair: there it waits
// among all who ask, in its priority. By a fair policy calls wait in line, and the first of them asks.
func (w *walk) lacks(v limit.Verdict) step {
	left := w.left()
	switch inTurn := left > 0 && (w.by.fair || mixed(&w.limits)); {
	case !inTurn && w.limits.Asks(v, left):
		return step{kind: stepStore}
	case v.Wait > left && (left == 0 || w.limits.Soonest(v.Why, v.Wait) > left && !mayRise(w.now, &w.limits, v)):
		return w.judge(v)
	case v.Ask:
		w.why = -1
	default:
		w.why = int32(v.Why)
	}
	return step{kind: stepLine}
}

// mayRise reports whether the wait of a verdict may become shorter before it is over, as the first answer of the upstream
// may report another limit. A call does not end because of a rate that is only the configuration's guess.
func mayRise(now time.Duration, p *limit.Charges, v limit.Verdict) bool {
	return v.Wait != bucket.Never && !v.OK && p.Unheard(v.Why) && !p.Paused(now, v.Why)
}

// mixed reports whether a call is charged to limits of this process beside some that a fleet shares.
func mixed(p *limit.Charges) bool {
	own, shared := false, false
	for i := range p.Len() {
		c := p.Charge(i)
		if c.Cost > 0 {
			own, shared = own || !c.Registry.Shared(), shared || c.Registry.Shared()
		}
	}
	return own && shared
}

// moves charges a call that waits to the limits in force, and asks them.
func (w *walk) moves() step {
	w.handBack(w.now)
	w.limits.Reset()
	w.why = -1
	w.by = w.u.live.Load().plan(w.call)
	w.charge(w.now, w.call)
	return w.turn()
}

// fetch asks the store for what is shared with a fleet, waiting for the call's turn as long as it may.
func (w *walk) fetch(ctx context.Context) (step, error) {
	// What the store has granted may have gone to another call when this one takes it: then it asks again.
	until := max(w.now, w.until)
	for came := w.now; ; {
		v, opened, err := w.askStore(ctx, until, -1)
		switch {
		case err != nil:
			return step{}, err
		case opened:
			if d := w.hears(); d.refused() {
				return d, nil
			}
		case !v.OK:
			return w.judge(v), nil
		}
		if w.charged.moved(w.u.live.Load()) {
			return step{kind: stepMove}, nil
		}
		d := w.turn()
		if d.kind == goOn.kind && w.why < 0 && w.now > came {
			w.why = w.shared() // it waited for that
		}
		if d.kind != stepStore {
			return d, nil
		}
	}
}

// askStore asks the store until the instant at most, for the charge in whose line the call stands, -1 for none, and unless the breaker opens meanwhile or
// other limits come in force, which it reports.
func (w *walk) askStore(ctx context.Context, until time.Duration, at int) (v limit.Verdict, opened bool, err error) {
	w.u.pauses.asks(w.now)
	if w.u.sleepers.closed.Load() { // nobody waits for a turn any more; what need not wait for one goes
		v, w.now, err = w.limits.FetchInLine(ctx, w.now, w.now, w.by.priority(w.call), at)
		return v, err == nil && !v.OK, err
	}
	inner, s, done := w.u.sleepers.context(ctx, w.breaker)
	defer done()
	if s.goesBy(w.charged); w.charged.moved(w.u.live.Load()) {
		return v, true, nil
	}
	asked := w.now
	v, w.now, err = w.limits.FetchInLine(inner, w.now, until, w.by.priority(w.call), at)
	w.asked += micro(w.now - asked)
	if err != nil && ctx.Err() == nil && s.opened.Load() {
		return v, true, nil
	}
	return v, false, err
}

// judge is the step of limits that say no, and ends the attempt's way: whatever any gate gave goes back.
// The reason is the limit's, unless a pause holds the limit: then it is whatever the pause is for.
func (w *walk) judge(v limit.Verdict) step {
	c := w.limits.Charge(v.Why)
	w.why, w.lack = int32(v.Why), v.Lack
	d := no(RateLimited, v.Wait)
	switch {
	// Quota only where the amount is used up: a store that is away, or a hint, says no for other reasons.
	case v.Wait == bucket.Never: // the cost is at fault
	case c.Registry.Limit().IsQuota() && w.limits.Look(w.now, v.Why).Left < c.Cost && !w.limits.Lacks(w.now, v.Why).Away():
		d.why = QuotaExhausted
	case w.limits.Paused(w.now, v.Why):
		e := w.u.pauses.In(w.now, whose(c))
		d = refusedBy(w.now, &e, v.Wait)
	}
	w.undo()
	return d
}
