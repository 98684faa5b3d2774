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

// decide decides what follows an attempt: another one, or the end of the call. A retry needs three
// yeses: that of package retry, for which the outcome has to be worth it, safe to repeat, and early
// enough before the deadline; that the call's own circumstances allow it (foundOut, NoMore); and that
// of the purses, which bound how many there are for all calls together.
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

// another asks retry whether there is another attempt, and when. A call within an attempt of a weir
// further out has had its only one.
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

// waitsTooLong reports whether the wait for another attempt exceeds the call's own bounds.
func (r *Run) waitsTooLong(d time.Duration) bool {
	most, retries := r.call.MaxWait, r.call.RetryFor
	return most > 0 && r.waited+d > most || retries > 0 && r.waited-r.queued+d > retries
}

// afford asks retry, and then the purse that pays for it.
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
	// Both purses have to pay: that of this process, then the one that all processes have in
	// common. What the first has paid comes back if the second refuses.
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

// pay takes a retry from the purse of this process. One of an attempt that was throttled, for which the upstream did nothing, is free
// where a rate learns: that bounds it.
func (r *Run) pay() (retry.Receipt, bool) {
	if r.plan.learns && r.outcome.Class == outcome.Throttled && r.outcome.Undone {
		return 0, true
	}
	o := r.outcome // a copy, so that r need not be on the heap
	return r.live.purse.Retry(r.now, &o)
}

// lingers reports whether the end of the call has to wait as long as the retry would that the budget has refused. The caller of
// a long poll asks again when it ends, so without the wait it would make more attempts than with the retry. AWS SDKs do the same.
func (r *Run) lingers() bool {
	return r.call.Polls && r.next.Why == retry.ErrBudget && r.next.After > 0
}

// linger waits before the end of a call that lingers.
func (r *Run) linger() {
	r.paid = 0 // for no retry that was not made
	if r.pause(r.next) {
		r.giveUp(r.next)
	}
}

// mayRetry takes a retry from what all processes may make together. Nobody waits
// for one to come, though the store is waited for. While the store has not been reached since the start, or
// has lost what it knew, this process has as much for itself, as without a store: no limit of the upstream's is
// at stake, and the first purse still bounds it.
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

// pauseBefore waits for the next attempt, and once more whenever that would most likely fail. It reports false
// if there is no next attempt after all: the call is over, and what had paid for it is paid back.
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

// pause waits, or ends the call if its caller leaves meanwhile.
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

// rest is the wait for the next attempt. It ends when the breaker opens: whether the attempt would come before the next probe or
// after it, its caller gets an answer now. When the pause is lifted that the upstream
// has asked for, what is left of it is the retry's own delay.
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

// refused ends a call for which there was no permit: before its first attempt
// with the refusal itself, later with the last attempt's error and the refusal
// as the reason why there is no other.
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

// giveUp ends a call whose last attempt is not followed by another. The caller gets what that
// attempt returned, as it is, where weir had nothing to decide: a first attempt that cannot be
// repeated. Else it is a *retry.GaveUpError, which is told of, too.
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
		wait = 0 // it was not that which was refused
	}
	r.done(r.gaveUp(d.Why, wait))
}

// tellGaveUp tells that a call has failed for good.
func (r *Run) tellGaveUp(why error) {
	if r.u.options.Events.GaveUp != nil {
		tell(r.u.options.Events.GaveUp, GaveUp{r.subject(), r.attempts, r.outcome, why, r.last})
	}
}

// gaveUp is the error of a call that could have had another attempt. wait is how long that would
// have been to wait for; 0 if it is not known.
func (r *Run) gaveUp(why error, wait time.Duration) error {
	return &retry.GaveUpError{
		Upstream: r.u.name, Operation: r.plan.name, Attempts: r.attempts, HeldBack: r.held, Elapsed: r.now - r.start,
		Wait: wait, Why: why, Last: r.last, Outcome: r.outcome,
	}
}

// done ends a call with what its last attempt returned.
func (r *Run) done(err error) { r.finish(err, false) }

// finish ends a call, once: the breaker hears how it went unless it has heard already, and the
// call is counted. refused says that the gates had the last word, and not the upstream.
func (r *Run) finish(err error, refused bool) {
	r.err, r.over = err, true
	if r.attempts > 0 {
		r.permit.count(r.now, &r.word, r.permit.name) // unless it has heard
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

// mostLikelyFails reports whether a retry whose time has come would most likely fail, as
// everything does; see retry.Holdoff. It is sent all the same if the upstream has said
// itself when to come, or if the breaker will have its say.
func (r *Run) mostLikelyFails() bool {
	return !r.told() && !r.plan.holdoff.Allows(r.now) && r.permit.breaker.Look(r.now).Phase == breaker.Closed
}

// told reports whether the upstream has said itself when to come. That is believed over everything
// that weir makes out by itself.
func (r *Run) told() bool { return r.outcome.Hint.Said && r.outcome.Hint.After > 0 }

// foundOut reports whether the call is a probe that has seen the upstream fail as
// everything did before. Its other attempts are not made: they would tell no more, and
// the next probe waits for its end.
func (r *Run) foundOut() bool {
	return r.permit.given.Probe && r.plan.holdoff.Holds() && !r.told()
}

// holdBack is what follows an attempt that is not made: as though it had been, and had
// failed as the last one did. It stays paid for until there is another.
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
