package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// decide decides what follows an attempt: another one, or the end of the call. A retry requires three conditions.
// Package retry must find the outcome retryable, safe to repeat and early enough before the deadline. The call's
// circumstances must allow it (foundOut, NoMore). And the budgets, which bound the retries of all calls together,
// must pay for it.
func (r *Run) decide() {
	if r.outcome.Class == outcome.OK {
		r.live.purse.Success(r.now, r.paid)
		r.done(r.last)
		return
	}
	r.next = r.afford()
	switch {
	case r.lingers():
	case !r.next.Again:
		r.giveUp(r.next)
	case r.u.options.Events.Retried != nil:
		tell(r.u.options.Events.Retried, Retried{r.subject(), r.attempts, r.outcome, r.last, r.next.After})
	}
}

// another asks package retry whether and when another attempt follows. A call within an attempt of an outer weir has
// only one.
func (r *Run) another() retry.Decision {
	c := r.plan.retry
	if r.nested {
		c.Attempts = 1
	}
	d := c.Decide(retry.Attempt{
		Number: r.attempts + r.held, Outcome: r.outcome, Safe: r.call.Safe, Prev: r.prev,
		Bounded: r.deadline != bucket.Never, Left: r.deadline - r.now,
	}, r.u.options.Rand)
	if d.Again && r.waitsTooLong(d.After) {
		return retry.Decision{Why: retry.ErrDeadline, After: d.After}
	}
	return d
}

// waitsTooLong reports whether the wait before another attempt would exceed the call's bounds.
func (r *Run) waitsTooLong(d time.Duration) bool {
	most, retries := r.call.MaxWait, r.call.RetryFor
	return most > 0 && r.waited+d > most || retries > 0 && r.waited-r.queued+d > retries
}

// afford asks package retry and then the budgets.
func (r *Run) afford() retry.Decision {
	d := r.another()
	if !d.Again {
		return d
	}
	if r.foundOut() {
		return retry.Decision{Why: retry.ErrProbe}
	}
	if r.obstacle != nil {
		return retry.Decision{Why: r.obstacle}
	}
	// Both budgets have to pay: that of this process, then the fleet's. If the second refuses, the first gets its
	// payment back.
	paid, ok := r.pay()
	if !ok {
		return retry.Decision{Why: retry.ErrBudget, After: d.After, Delay: d.Delay}
	}
	if !r.mayRetry() {
		r.live.purse.Unspent(r.now, paid)
		return retry.Decision{Why: retry.ErrBudget, After: d.After, Delay: d.Delay}
	}
	r.paid = paid
	return d
}

// pay takes a retry from the budget of this process. The retry of a throttled attempt that the upstream did not
// execute is free under an adaptive rate, which bounds it.
func (r *Run) pay() (retry.Receipt, bool) {
	if r.plan.learns && r.outcome.Class == outcome.Throttled && r.outcome.Undone {
		return 0, true
	}
	o := r.outcome // a copy, so that r need not be on the heap
	return r.live.purse.Retry(r.now, &o)
}

// lingers reports whether the call has to end as late as the retry that the budget has refused. The caller of a long
// poll calls again when it ends, so without the wait it would make more attempts than with the retry. AWS SDKs do the
// same.
func (r *Run) lingers() bool {
	return r.call.Polls && r.next.Why == retry.ErrBudget && r.next.After > 0
}

// linger waits before it ends the call.
func (r *Run) linger() {
	r.paid = 0 // the retry was not made
	if r.pause(r.next) {
		r.giveUp(r.next)
	}
}

// mayRetry takes a retry from the fleet's limit. It waits for the store but not for a unit. If the store was not
// reached since the start, or has lost its data, it uses the local replacement: no limit of the upstream is at risk,
// and the first budget still bounds retries.
func (r *Run) mayRetry() bool {
	all := r.live.retries
	if all == nil {
		return true
	}
	v := r.takeRetry(all)
	if alone := r.live.alone; alone != nil && (v.Lack == limit.LacksStore || v.Lack == limit.LacksMemory) {
		v = r.takeRetry(alone)
	}
	return v.OK
}

func (r *Run) takeRetry(from *limit.Registry) limit.Verdict {
	var p limit.Charges
	p.Add(limit.Charge{Registry: from, Cost: 1})
	v := p.Take(r.now)
	for v.Ask {
		v, _ = p.Fetch(context.Background(), r.now, r.now, r.plan.priority(&r.call)) // a context that does not end
		if !v.OK {
			return v
		}
		v = p.Take(r.now)
	}
	return v
}

// pauseBefore waits for the next attempt, and again whenever that would most likely fail. It returns false if no
// attempt follows: the call is over, and the budget has its payment back.
func (r *Run) pauseBefore() bool {
	for d := r.next; r.pause(d); {
		if !r.mostLikelyFails() {
			return true
		}
		if d = r.holdBack(); !d.Again {
			r.live.purse.Unspent(r.now, r.paid)
			r.giveUp(d)
			break
		}
	}
	return false
}

// pause waits. It ends the call and returns false if the caller leaves meanwhile.
func (r *Run) pause(d retry.Decision) bool {
	before := r.now
	err := r.rest(d)
	r.now, r.prev = r.u.clock.Now(), d.After
	r.waited += r.now - before
	if err == nil {
		return true
	}
	r.live.purse.Unspent(r.now, r.paid)
	r.outcome.Class, r.word.Class = outcome.Canceled, outcome.Canceled
	r.done(r.gaveUp(err, 0))
	return false
}

// rest waits for the next attempt. It ends when the breaker opens, so that the caller gets a result immediately. If
// the pause that the upstream asked for is lifted, only the retry's own delay remains.
func (r *Run) rest(d retry.Decision) error {
	b, now := r.permit.breaker, r.u.clock.Now()
	until, own := later(now, d.After), later(now, d.Delay)
	for now < until && !isOpen(now, b) && !r.u.sleepers.closed.Load() {
		if _, err := r.u.sleepers.sleep(r.ctx, b, until-now); err != nil {
			return err
		}
		if now = r.u.clock.Now(); r.permit.lifted(now) {
			until = own
		}
	}
	return nil
}

// refused ends a call without a permit. Before the first attempt it returns the refusal. Later it returns the last
// attempt's error, with the refusal as the reason for giving up.
func (r *Run) refused(err error) {
	if r.attempts == 0 {
		if r.ctx.Err() != nil {
			r.outcome.Class = outcome.Canceled
		}
		r.finish(err, true)
		return
	}
	r.live.purse.Unspent(r.u.clock.Now(), r.paid)
	r.tellGaveUp(err)
	r.finish(r.gaveUp(err, 0), true)
}

// giveUp ends a call without another attempt. The caller gets the last attempt's result unchanged if weir had nothing
// to decide, as for a first attempt that is not retryable. Otherwise it gets a *retry.GaveUpError, which is also
// reported.
func (r *Run) giveUp(d retry.Decision) {
	plain := r.outcome.Class == outcome.Canceled ||
		r.attempts == 1 && (errors.Is(d.Why, retry.ErrNotRetryable) || r.nested)
	if plain {
		r.done(r.last)
		return
	}
	r.tellGaveUp(d.Why)
	wait := d.After
	if d.Why == retry.ErrBudget {
		wait = 0 // the wait was not the reason
	}
	r.done(r.gaveUp(d.Why, wait))
}

// tellGaveUp reports that a call has failed finally.
func (r *Run) tellGaveUp(why error) {
	if r.u.options.Events.GaveUp != nil {
		tell(r.u.options.Events.GaveUp, GaveUp{r.subject(), r.attempts, r.outcome, why, r.last})
	}
}

// gaveUp returns the error of a call that could have had another attempt. wait is how long that would have had to
// wait; 0 if unknown.
func (r *Run) gaveUp(why error, wait time.Duration) error {
	return &retry.GaveUpError{
		Upstream: r.u.name, Operation: r.plan.name, Attempts: r.attempts, HeldBack: r.held, Elapsed: r.now - r.start,
		Wait: wait, Why: why, Last: r.last, Outcome: r.outcome,
	}
}

// done ends a call with the result of its last attempt.
func (r *Run) done(err error) { r.finish(err, false) }

// finish ends a call once, counts it, and reports its outcome to the breaker if that is still missing. refused
// reports that the gates and not the upstream ended it.
func (r *Run) finish(err error, refused bool) {
	r.err, r.over = err, true
	if r.attempts > 0 {
		r.permit.count(r.now, &r.word, r.permit.name) // unless it was reported
	}
	if r.u.options.Events.Recorded != nil {
		r.permit.recorded.done(&r.permit, r, err, refused)
	}
	r.permit.limits.Free()
	if r.plan.tallies == nil && r.u.options.Events.Done == nil {
		return
	}
	_, body := r.permit.took(r.now)
	took, unsent := max(r.now-body-r.start, r.waited), r.outcome.Class == outcome.Rejected && r.outcome.Unsent
	d := Done{Attempts: r.attempts, Class: r.outcome.Class, Unsent: unsent, Refused: refused, Took: took, Waited: r.waited}
	r.plan.done(r.permit.tally, &d)
	if r.u.options.Events.Done != nil {
		d.Subject = r.subject()
		tell(r.u.options.Events.Done, d)
	}
}

// mostLikelyFails reports whether a due retry would most likely fail like all other attempts; see retry.Holdoff. It
// returns false if the upstream asked for this time, or if the breaker is not closed and will decide.
func (r *Run) mostLikelyFails() bool {
	return !r.told() && !r.plan.holdoff.Allows(r.now) && r.permit.breaker.Look(r.now).Phase == breaker.Closed
}

// told reports whether the upstream has stated when to retry. That overrides weir's own estimates.
func (r *Run) told() bool { return r.outcome.Hint.Said && r.outcome.Hint.After > 0 }

// foundOut reports whether the call is a probe that has seen the upstream fail as before. It is not retried: retries
// would bring no new information, and the next probe waits for its end.
func (r *Run) foundOut() bool {
	return r.permit.given.Probe && r.plan.holdoff.Holds() && !r.told()
}

// holdBack returns what follows an attempt that is not made, as if it had failed like the last one. The payment stays
// until there is another attempt.
func (r *Run) holdBack() retry.Decision {
	r.held++
	d := r.another()
	if r.u.options.Events.HeldBack != nil {
		e := HeldBack{Subject: r.subject(), Attempts: r.attempts, Held: r.held}
		if d.Again {
			e.After = d.After
		}
		tell(r.u.options.Events.HeldBack, e)
	}
	return d
}
