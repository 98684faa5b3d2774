package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Do makes a call under the upstream's policy: it waits for its turn, calls fn,
// and calls it again where that is worth it and safe. fn is given a context that
// ends with the attempt's timeout.
//
// The error is that of the last attempt: as it is if weir had nothing to do with
// it, in a *retry.GaveUpError if there could have been another attempt but is
// none. If no attempt was made at all it is a *Refusal, or the cause of ctx's
// end. A call made within an attempt of another Do, with its context, makes one
// attempt only: it is the outer one that repeats. An error that implements outcome.Classifier says itself what it means.
func Do[T any](ctx context.Context, u *Upstream, c Call, fn func(context.Context) (T, error)) (T, error) {
	var r run
	r.u, r.call = u, c
	r.begin(ctx)
	for {
		v, err := once(&r, fn)
		if !r.again(err) {
			return v, r.err
		}
	}
}

// once makes one attempt, or none if the gates refuse it. What fn leaves behind
// is reported on every path, a panic included.
func once[T any](r *run, fn func(context.Context) (T, error)) (v T, err error) {
	if err = r.admit(); err != nil {
		return v, err
	}
	a := &attempt{clock: r.u.clock, parent: r.ctx, deadline: r.until, cause: r.timeout()}
	defer r.report(a)
	v, err = fn(a)
	r.classify(a.why(err))
	return v, err
}

// A run is a call on its way: what Do and Transport keep between attempts.
type run struct {
	u      *Upstream
	live   *live
	plan   *plan
	call   Call
	ctx    context.Context
	nested bool // an attempt of a weir further out

	permit   Permit // for the present attempt
	refusal  error  // why there is none
	start    time.Duration
	deadline time.Duration // for the whole call
	own      time.Duration // the caller's deadline
	until    time.Duration // for the present attempt, if that is before the caller's own deadline
	now      time.Duration // the latest instant that was looked at
	attempts int
	held     int           // attempts that were not made because nothing succeeds
	prev     time.Duration // the wait before the present attempt
	paid     retry.Receipt // for the present attempt
	waited   time.Duration
	outcome  outcome.Outcome
	word     outcome.Outcome // of the last attempt that says something of the upstream; the breaker's if the call fails
	obstacle error           // why there can be no other attempt, whatever the outcome
	last     error           // of the last attempt
	err      error           // what the caller gets
}

func (r *run) begin(ctx context.Context) {
	u := r.u
	r.ctx, r.live = ctx, u.live.Load()
	r.plan = r.live.plan(&r.call)
	r.nested = within(ctx)
	r.word.Class = outcome.Canceled
	r.start = u.clock.Now()
	r.now, r.deadline = r.start, bucket.Never
	if at, ok := u.clock.Deadline(ctx); ok {
		r.deadline = at
	}
	r.own = r.deadline
	if t := r.live.policy.Timeouts.Call; t > 0 {
		r.deadline = min(r.deadline, later(r.start, t))
	}
}

// admit passes the gates for one attempt.
func (r *run) admit() error {
	if r.ctx.Err() != nil {
		r.refusal = context.Cause(r.ctx)
		return r.refusal
	}
	p := &r.permit
	p.begin(r.u, r.plan, &r.call, int32(r.attempts+1))
	r.refusal = p.admit(r.ctx, r.now, r.deadline-max(0, r.call.Takes), &r.call)
	r.waited += p.waited
	if r.refusal != nil {
		return r.refusal
	}
	p.used = true
	if r.attempts++; r.attempts == 1 {
		r.live.purse.Call(p.sent) // a call that the gates refuse earns no retries
	}
	r.until = r.deadline
	if t := r.live.policy.Timeouts.Attempt; t > 0 {
		r.until = min(r.deadline, later(p.sent, t))
	}
	if r.call.Another > 0 {
		r.until = min(r.until, r.leaving())
	}
	if r.until >= r.own {
		r.until = bucket.Never // the caller's context ends by itself; a timer here might blame the upstream
	}
	r.outcome = outcome.Outcome{Class: outcome.Canceled} // what a panic reports
	return nil
}

// leaving is when the present attempt ends so that another has its time. An attempt is
// given twice as much as that at least: what ends before has not had its time, and says
// nothing of the upstream.
func (r *run) leaving() time.Duration {
	a, sent := r.call.Another, r.permit.sent
	if r.deadline == bucket.Never || r.nested || r.obstacle != nil || r.attempts >= r.plan.retry.Attempts || (r.deadline-sent)/3 < a {
		return bucket.Never
	}
	return r.deadline - a
}

// timeout is why the present attempt ends at r.until.
func (r *run) timeout() error {
	t := r.live.policy.Timeouts.Attempt
	if r.until == r.deadline && (t <= 0 || r.until < later(r.permit.sent, t)) {
		return ErrCallTimeout
	}
	return ErrAttemptTimeout
}

// report ends an attempt: every gate hears of it, the breaker if nothing can follow.
func (r *run) report(a *attempt) {
	if a != nil {
		a.end()
	}
	o := &r.outcome
	r.now = r.permit.ended(o)
	r.permit.report(r.now, o)
	switch {
	case o.Class == outcome.OK, o.Class == outcome.Canceled && o.Code != callTimedOut:
		r.permit.count(r.now, o)
	case o.Class != outcome.Canceled:
		r.word = *o
	}
}

func (r *run) classify(err error) {
	if err == nil {
		r.outcome.Class = outcome.OK
		return
	}
	r.outcome = r.live.policy.Classify.Error(r.ctx, err)
}

// again decides what follows an attempt, and waits if it is another one. If it
// says no, r.err is what the caller gets.
func (r *run) again(err error) bool {
	if r.refusal != nil {
		r.refused(err)
		return false
	}
	r.last = err
	if r.outcome.Class == outcome.OK {
		r.live.purse.Success(r.now, r.paid)
		r.done(err)
		return false
	}
	d := r.decide()
	if !d.Again {
		r.giveUp(d)
		return false
	}
	return r.pauseBefore(d)
}

// another asks retry whether there is another attempt, and when.
func (r *run) another() retry.Decision {
	c := r.plan.retry
	if r.nested {
		c.Attempts = 1
	}
	return c.Decide(retry.Attempt{
		Number: r.attempts + r.held, Outcome: r.outcome, Safe: r.call.Safe, Prev: r.prev,
		Bounded: r.deadline != bucket.Never, Left: r.deadline - r.now,
	}, r.u.options.Rand)
}

// decide asks retry, and then the purse that pays for it.
func (r *run) decide() retry.Decision {
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
	o := r.outcome // a copy, so that r need not be on the heap
	paid, ok := r.live.purse.Retry(r.now, &o)
	if !ok {
		return retry.Decision{Why: retry.ErrBudget}
	}
	if !r.mayRetry() {
		r.live.purse.Unspent(r.now, paid)
		return retry.Decision{Why: retry.ErrBudget}
	}
	r.paid = paid
	return d
}

// pauseBefore waits for the next attempt, and once more whenever that would be futile.
func (r *run) pauseBefore(d retry.Decision) bool {
	if r.u.options.Events.Retried != nil {
		tell(r.u.options.Events.Retried, Retried{r.subject(), r.attempts, r.outcome, r.last, d.After})
	}
	for r.pause(d) {
		if !r.futile() {
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
func (r *run) pause(d retry.Decision) bool {
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

// refused ends a call for which there was no permit: before its first attempt
// with the refusal itself, later with the last attempt's error and the refusal
// as the reason why there is no other.
func (r *run) refused(err error) {
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

func (r *run) giveUp(d retry.Decision) {
	plain := r.outcome.Class == outcome.Canceled ||
		r.attempts == 1 && (errors.Is(d.Why, retry.ErrNotRetryable) || r.nested)
	if plain {
		r.done(r.last)
		return
	}
	r.tellGaveUp(d.Why)
	r.done(r.gaveUp(d.Why, d.After))
}

func (r *run) tellGaveUp(why error) {
	if r.u.options.Events.GaveUp != nil {
		tell(r.u.options.Events.GaveUp, GaveUp{r.subject(), r.attempts, r.outcome, why, r.last})
	}
}

func (r *run) gaveUp(why error, wait time.Duration) error {
	return &retry.GaveUpError{
		Upstream: r.u.name, Operation: r.plan.name, Attempts: r.attempts, HeldBack: r.held, Elapsed: r.now - r.start,
		Wait: wait, Why: why, Last: r.last, Outcome: r.outcome,
	}
}

func (r *run) done(err error) { r.finish(err, false) }

func (r *run) finish(err error, refused bool) {
	r.err = err
	if r.attempts > 0 {
		r.permit.count(r.now, &r.word) // unless it has heard
	}
	if r.u.options.Events.Done != nil {
		now := max(r.now, r.start+r.waited)
		tell(r.u.options.Events.Done, Done{r.subject(), r.attempts, r.outcome.Class, r.outcome.Class == outcome.Rejected && r.outcome.Unsent, refused, now - r.start, r.waited})
	}
}

func (r *run) subject() Subject { return subject(r.u, r.plan, r.call.ID, r.call.Keys) }
