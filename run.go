package weir

import (
	"cmp"
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A Run is a call on its way, for programs that send its attempts in a loop of their own.
// Most want Do, which is this loop:
//
//	r := u.Begin(ctx, call)
//	defer r.End()
//	for r.Next() {
//		err := send(r.Context())
//		r.Report(r.Classify(err), err)
//	}
//	err = r.Err()
//
// Next waits, for the time of the attempt and for its turn; each attempt is reported once.
// A Run is for one goroutine.
type Run struct {
	// Ready is asked when the time of an attempt has come, before it waits for its turn. An
	// error ends the call as a refusal would. nil means that the attempt can be made.
	Ready func() error

	u      *Upstream
	live   *live
	plan   *plan
	call   Call
	ctx    context.Context
	nested bool // an attempt of a weir further out

	permit   Permit   // for the present attempt
	attempt  *attempt // its context; nil until somebody asks for it
	slot     *Slot    // likewise
	made     bool     // the present attempt has not been reported
	started  bool     // ReportStart has reported it, and ReportEnd has not
	over     bool     // there is no other attempt
	next     retry.Decision
	start    time.Duration
	queued   time.Duration // how long the first attempt waited
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

// Begin begins a call. It asks nobody for anything yet, and must be ended: by calling Next until it
// reports false, or End.
func (u *Upstream) Begin(ctx context.Context, c Call) *Run {
	r := &Run{u: u, call: c, ctx: ctx}
	r.begin()
	return r
}

// begin notes the policy in force, which the call goes by to its end, and by when it has to be over:
// the caller's deadline, or that of the policy from now on if it is sooner.
func (r *Run) begin() {
	u := r.u
	r.live = u.live.Load()
	r.plan = r.live.plan(&r.call)
	r.nested = within(r.ctx)
	r.word.Class = outcome.Canceled
	r.start = u.clock.Now()
	r.now, r.deadline = r.start, bucket.Never
	r.permit.recorded.begins(&r.permit, u, r.plan, &r.call, r.start, true)
	if at, ok := u.clock.Deadline(r.ctx); ok {
		r.deadline = at
	}
	r.own = r.deadline
	if t := r.live.policy.Timeouts.Call; t > 0 {
		r.deadline = min(r.deadline, later(r.start, t))
	}
}

// Next waits until the next attempt may be made. If there is none it reports false: the call is
// over, and Err says how it ended. An attempt that was not reported ends it, too.
func (r *Run) Next() bool {
	if r.made {
		r.End()
	}
	if !r.over && r.lingers() {
		r.linger()
	}
	if r.over || r.next.Again && !r.pauseBefore() {
		return false
	}
	err := r.ready()
	if err == nil {
		err = r.admit()
	}
	if err != nil {
		r.refused(err)
	}
	return err == nil
}

// ready asks the program whether the attempt can be made.
func (r *Run) ready() error {
	if r.Ready == nil {
		return nil
	}
	return r.Ready()
}

// admit passes the gates for one attempt.
func (r *Run) admit() error {
	if r.ctx.Err() != nil {
		return context.Cause(r.ctx)
	}
	p := &r.permit
	p.begin(r.u, r.plan, &r.call, int32(r.attempts+1))
	if r.call.MaxWait > 0 {
		p.maxWait = max(r.call.MaxWait-r.waited, 1)
	}
	if r.call.RetryFor > 0 && r.attempts > 0 {
		p.maxWait = max(min(cmp.Or(p.maxWait, r.call.RetryFor), r.call.RetryFor-r.waited+r.queued), 1)
	}
	err := p.admit(r.ctx, r.now, r.deadline-max(0, r.call.Takes), p.longest(), &r.call)
	r.waited += p.waited
	if err != nil {
		return err
	}
	p.used = true
	if r.attempts++; r.attempts == 1 {
		r.queued = r.waited
		r.earn() // a call that the gates refuse earns no retries
	}
	r.made, r.attempt, r.slot = true, nil, nil
	r.until = r.ends()
	return nil
}

// earn tells the purse of the call's first attempt.
func (r *Run) earn() {
	p := &r.permit
	if b := r.live.budget; b != nil && p.cell >= 0 {
		b.CallIn(p.cell, p.sent)
		return
	}
	r.live.purse.Call(p.sent)
}

// ends is when the present attempt ends.
func (r *Run) ends() time.Duration {
	until := r.deadline
	if t := r.live.policy.Timeouts.Attempt; t > 0 {
		until = min(r.deadline, later(r.permit.sent, t))
	}
	if r.call.Another > 0 {
		until = min(until, r.leaving())
	}
	if until >= r.own {
		return bucket.Never // the caller's context ends by itself; a timer here might blame the upstream
	}
	return until
}

// leaving is when the present attempt ends so that another has its time. An attempt is
// given twice as much as that at least: what ends before has not had its time, and says
// nothing of the upstream.
func (r *Run) leaving() time.Duration {
	a, sent := r.call.Another, r.permit.sent
	if r.deadline == bucket.Never || r.nested || r.obstacle != nil || r.attempts >= r.plan.retry.Attempts || (r.deadline-sent)/3 < a {
		return bucket.Never
	}
	return r.deadline - a
}

// Context is the context of the present attempt: it ends with the attempt's timeout, and
// with its report. A call within it is not repeated.
func (r *Run) Context() context.Context {
	if r.attempt == nil {
		r.attempt = &attempt{u: r.u, parent: r.ctx, deadline: r.until, ofCall: r.ofCall()}
	}
	return r.attempt
}

// Timeout is how long the present attempt may take, from its turn on, and the error that
// says so, for those who keep that time themselves, without Context.
func (r *Run) Timeout() (time.Duration, error) { return r.until - r.permit.sent, r.why() }

// Left is how much of the call's time is left.
func (r *Run) Left() time.Duration { return r.deadline - r.u.clock.Now() }

// why is why the present attempt ends at r.until.
func (r *Run) why() error {
	if r.ofCall() {
		return ErrCallTimeout
	}
	return ErrAttemptTimeout
}

// ofCall reports whether what ends at r.until is the call's time, and not the attempt's.
func (r *Run) ofCall() bool {
	t := r.live.policy.Timeouts.Attempt
	return r.until == r.deadline && (t <= 0 || r.until < later(r.permit.sent, t))
}

// Policy is the policy that was in force when the call began. It must not be changed.
func (r *Run) Policy() *Policy { return &r.live.policy }

// Classify is what an attempt's error means by the policy; no error is a success.
func (r *Run) Classify(err error) outcome.Outcome {
	if err == nil {
		return outcome.Outcome{Class: outcome.OK}
	}
	if r.attempt != nil {
		err = r.attempt.why(err)
	}
	return r.live.policy.Classify.Error(r.ctx, err)
}

// NoMore says of the present attempt, before its report, that there can be no other one,
// whatever its outcome: why is the reason for giving up.
func (r *Run) NoMore(why error) { r.obstacle = why }

// Answered says of the present attempt that it was answered, although its outcome may be that of
// one that was not: what is in flight learns from the time that it took.
func (r *Run) Answered() { r.permit.heard = true }

// Spoiled says of the present attempt that its caller's own fault kept it from its end: what is
// in flight learns nothing of it.
func (r *Run) Spoiled() { r.permit.broken = true }

// Slot is the place of the present attempt among what is in flight, nil if that has no bound.
func (r *Run) Slot() *Slot {
	p := &r.permit
	if r.slot == nil && p.slot != 0 {
		r.slot = &Slot{flight: p.flight, clock: r.u.clock, breaker: p.breaker, sent: p.sent, slot: p.slot}
		r.slot.told.Add(1)
	}
	return r.slot
}

// ReportStart reports the present attempt when its answer has started, of which o is what the head says: the body is
// still to come. The call has no other attempt. The attempt's slot in flight is returned, and what learns of
// rates learns from the head. ReportEnd, which must follow, reports the rest: counters, events, the breaker, the
// limits and gates of the program's own. An outcome that is worth another attempt is reported as a whole.
func (r *Run) ReportStart(o outcome.Outcome) {
	if !r.made {
		return
	}
	if r.outcome = o; o.Retryable() || o.Class == outcome.Canceled {
		r.reported(nil)
		return
	}
	r.made, r.over, r.started, r.last, r.Ready = false, true, true, nil, nil
	r.landed()
	r.now = r.u.clock.Now()
	r.permit.reportStart(r.now, &r.outcome)
	r.slot.reported()
	if d := r.another(); o.Class != outcome.OK && r.attempts > 1 {
		r.tellGaveUp(d.Why)
		r.err = r.gaveUp(d.Why, 0)
	}
}

// ReportProgress reports that more of the answer's body has come. The breaker's probe has succeeded once an answer has
// been coming for a second: a stream may take minutes, and nobody else may call meanwhile.
func (r *Run) ReportProgress() {
	if r.started && r.permit.given.Probe {
		r.permit.progresses(r.u.clock.Now(), &r.outcome)
	}
}

// ReportEnd reports how an answer ended that ReportStart has reported: o is the outcome of the whole attempt. Durations in
// counters and events end with the head of the answer. Only the first report counts.
func (r *Run) ReportEnd(o outcome.Outcome) {
	if !r.started {
		return
	}
	r.started, r.outcome, r.now = false, o, r.u.clock.Now()
	r.permit.reportEnd(r.now, &r.outcome)
	switch {
	case o.Retryable():
		r.word = o
		r.tellGaveUp(retry.ErrStarted)
		r.done(r.gaveUp(retry.ErrStarted, 0))
		return
	case o.Class == outcome.OK:
		r.live.purse.Success(r.now, r.paid)
	}
	if o.Class != outcome.Rejected {
		r.permit.count(r.now, &r.outcome, r.permit.name)
	} else {
		r.word = o
	}
	r.done(r.err)
}

// Report ends the present attempt: every gate hears how it ended, the breaker when it is known whether another follows, and it is decided whether
// there is another. err is what the caller gets if there is none; nil means an answer, which the
// caller has already, whatever its outcome. Only the first report of an attempt counts.
func (r *Run) Report(o outcome.Outcome, err error) {
	if r.made {
		r.outcome = o
		r.reported(err)
	}
}

// classified is Report of what Classify says: an outcome is as large as eleven words, and is copied once less.
func (r *Run) classified(err error) {
	if r.made {
		if r.outcome = (outcome.Outcome{Class: outcome.OK}); err != nil {
			r.outcome = r.Classify(err)
		}
		r.reported(err)
	}
}

// reported is Report of r.outcome.
func (r *Run) reported(err error) {
	r.last = err
	r.report()
	r.decide()
}

// End ends a call that Next has not ended: an attempt that has no report, as after a panic, is
// reported as canceled; one that could have followed another is not made.
func (r *Run) End() {
	switch {
	case r.over:
	case r.made:
		r.outcome, r.last = outcome.Outcome{Class: outcome.Canceled}, context.Canceled
		r.report()
		r.done(context.Canceled)
	case r.lingers():
		r.giveUp(r.next)
	case r.next.Again:
		r.live.purse.Unspent(r.u.clock.Now(), r.paid)
		r.done(r.gaveUp(context.Canceled, 0))
	}
}

// report tells every gate how the attempt ended, the breaker if nothing can follow.
func (r *Run) report() {
	r.made = false
	r.landed()
	o := &r.outcome
	r.now = r.permit.ended(o)
	r.permit.report(r.now, o)
	r.slot.reported()
	switch {
	case o.Class == outcome.OK, o.Class == outcome.Canceled && o.Code != callTimedOut:
		r.permit.count(r.now, o, r.permit.name)
	case o.Class != outcome.Canceled:
		r.word = *o
	}
}

// landed ends the attempt's context, and has the permit know of the slot again.
func (r *Run) landed() {
	if r.attempt != nil {
		r.attempt.end()
	}
	r.slot.land(&r.permit)
}

// Err is how the call ended, as of Do: nil for a success, and for a last answer that is
// the caller's already and not worth another attempt.
func (r *Run) Err() error { return r.err }

// A Trace is what became of a call.
type Trace struct {
	Operation string
	Attempts  int
	Waited    time.Duration // for turns and between attempts
	Outcome   outcome.Outcome
	GaveUp    error // why there was no other attempt, if one was worth it
	Probed    bool  // its latest attempt was the one by which an open breaker finds out whether the upstream is there again, and it found out that it is not
}

// Trace is what became of the call so far.
func (r *Run) Trace() Trace {
	t := Trace{Operation: r.plan.name, Attempts: r.attempts, Waited: r.waited, Outcome: r.outcome, Probed: r.permit.inVain(r.outcome.Class)}
	if g, ok := r.err.(*retry.GaveUpError); ok {
		t.GaveUp = g.Why
	}
	return t
}

// subject says whose an event of the call is. It is made only where somebody listens.
func (r *Run) subject() Subject { return subject(r.u, r.plan, r.call.ID, r.call.Keys) }

// Do makes a call under the upstream's policy: it waits for its turn, calls fn,
// and calls it again where that is worth it and safe. fn is given a context that
// ends with the attempt's timeout.
//
// The error is that of the last attempt: as it is if weir had nothing to do with
// it, in a *retry.GaveUpError if there could have been another attempt but is
// none. If no attempt was made at all it is a *Refusal, or the cause of ctx's
// end. A call made within an attempt of another Do, with its context, makes one
// attempt only: it is the outer one that repeats. An error that implements outcome.Classifier says itself what it means.
func Do[T any](ctx context.Context, u *Upstream, c Call, fn func(context.Context) (T, error)) (v T, err error) {
	var r Run // as Begin has it, but copies c once
	r.u, r.call, r.ctx = u, c, ctx
	r.begin()
	defer r.End()
	for r.Next() {
		v, err = fn(r.Context())
		r.classified(err)
	}
	return v, r.Err()
}
