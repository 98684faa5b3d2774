package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
)

// The limits are asked all together: walk.turn takes the cost from each of them or from none. A call that must wait
// holds nothing, and joins the queue of the limit with the longest wait. At the head of that queue it asks all limits
// again. Package limit computes the remaining units (GCRA for buckets), and package line the order of calls.

// behind reports whether other calls wait for a limit of the call, and sets w.why to the limit with the largest total
// cost of waiting calls. It returns false for a cost that can never be met, which no queue can help.
func (w *walk) behind() bool {
	found, most := false, time.Duration(-1)
	for i := range w.limits.Len() {
		c := w.limits.Charge(i)
		switch {
		case c.Cost == 0, w.limits.Holds(i): // held since before it asked the store
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

// stepBehind queues the call at the limit that w.why names, unless another limit would refuse it even after its turn
// there. It returns the store's units first, because they expire before the turn may come.
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

// askBehind is for a call that does not wait: it takes units that waiting calls leave. Otherwise the refusal states
// how long the call would have waited at the end of the queue.
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

// lacks returns the next step of a call for which there are too few units: ask the store, queue, or refuse. It asks
// the store immediately if a fleet shares the limit, and the policy is not Fair and has no budget: it then waits among
// all that ask, by priority. Otherwise calls queue, and the head of the queue asks.
func (w *walk) lacks(v limit.Verdict) step {
	left := w.left()
	switch inTurn := left > 0 && w.inTurn(); {
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

// inTurn reports whether the call queues before it asks the store. A call of a budget does, because it asks repeatedly
// while other processes hold what it needs.
func (w *walk) inTurn() bool { return w.by.fair || w.by.budgets || mixed(&w.limits) }

// mayRise reports whether the wait of a verdict may become shorter, because the upstream's first response may
// advertise a higher limit. A rate that is only the configuration's guess must not refuse a call.
func mayRise(now time.Duration, p *limit.Charges, v limit.Verdict) bool {
	return v.Wait != bucket.Never && !v.OK && p.Unheard(v.Why) && !p.Paused(now, v.Why)
}

// mixed reports whether a call is charged to both local and shared limits.
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

// moves charges a waiting call to the limits in force, and asks them.
func (w *walk) moves() step {
	w.handBack(w.now)
	w.limits.Reset()
	w.why = -1
	w.by = w.u.live.Load().plan(w.call)
	w.charge(w.now, w.call)
	return w.turn()
}

// fetch asks the store for units of shared limits, and waits for the call's turn as long as it may.
func (w *walk) fetch(ctx context.Context) (step, error) {
	// Another call may take the units that the store has granted before this one does. Then it asks again.
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
			w.why = w.shared() // it waited for the store
		}
		if d.kind != stepStore {
			return d, nil
		}
	}
}

// askStore asks the store until the given instant. at is the charge in whose queue the call waits, or -1. askStore
// stops early, and reports it as opened, if the breaker opens or other limits come into force.
func (w *walk) askStore(ctx context.Context, until time.Duration, at int) (v limit.Verdict, opened bool, err error) {
	w.u.pauses.asks(w.now)
	if w.u.sleepers.closed.Load() { // no call may wait; a call that need not wait proceeds
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

// judge refuses a call by a limit, and returns what all gates gave. The reason is the limit's or, if a pause holds
// the limit, the pause's.
func (w *walk) judge(v limit.Verdict) step {
	c := w.limits.Charge(v.Why)
	w.why, w.lack = int32(v.Why), v.Lack
	d := no(RateLimited, v.Wait)
	switch {
	// Quota only if the amount is used up: an unreachable store or a hint refuses for other reasons.
	case v.Wait == bucket.Never: // no wait helps
	case c.Registry.Limit().IsBudget():
		d = w.judgeBudget(d)
	case c.Registry.Limit().IsQuota() && w.limits.Look(w.now, v.Why).Left < c.Cost && !w.limits.Lacks(w.now, v.Why).Away():
		d.why = QuotaExhausted
	case w.limits.Paused(w.now, v.Why):
		d = w.judgePaused(c, d)
	}
	w.undo()
	return d
}

// judgePaused refuses a call by a pause of a limit.
func (w *walk) judgePaused(c limit.Charge, d step) step {
	e := w.u.pauses.In(w.now, whose(c))
	return refusedBy(w.now, &e, d.wait)
}

// judgeBudget refuses a call by a limit in dollars. The budget is exhausted if it is spent. If calls in flight hold what
// is missing, another try helps as soon as one of them ends.
func (w *walk) judgeBudget(d step) step {
	v := w.limits.Look(w.now, int(w.why))
	c := w.limits.Charge(int(w.why)) // at its present cost
	switch {
	case w.limits.Paused(w.now, int(w.why)):
		return w.judgePaused(c, d)
	case w.lack != limit.LacksNothing || w.limits.Lacks(w.now, int(w.why)).Away(): // the store is the reason
	case v.Left+v.Held < c.Cost:
		d.why = QuotaExhausted
	default:
		d.wait = max(1, min(v.HeldFor, max(v.Reset, d.wait)))
	}
	return d
}
