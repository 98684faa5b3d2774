package weir

import (
	"cmp"
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A Run is a call in progress, for programs that send its attempts in their own loop. Most programs use Do, which is
// this loop:
//
//	r := u.Begin(ctx, call)
//	defer r.End()
//	for r.Next() {
//		err := send(r.Context())
//		r.Report(r.Classify(err), err)
//	}
//	err = r.Err()
//
// Next waits until the next attempt is due and admitted. Each attempt is reported once. A Run is not safe for
// concurrent use.
type Run struct {
	// Ready is called when an attempt is due, before it waits for its turn. An error ends the call like a refusal.
	// nil means always ready.
	Ready func() error

	u      *Upstream
	live   *live
	plan   *plan
	call   Call
	ctx    context.Context
	nested bool // within an attempt of an outer weir

	permit   Permit   // for the present attempt
	attempt  *attempt // its context; nil until requested
	slot     *Slot    // nil until requested
	made     bool     // the present attempt is not reported yet
	started  bool     // ReportStart was called, and ReportEnd was not
	over     bool     // there is no further attempt
	next     retry.Decision
	start    time.Duration
	queued   time.Duration // wait of the first attempt
	deadline time.Duration // of the complete call
	own      time.Duration // the caller's deadline
	until    time.Duration // end of the present attempt, if before the caller's deadline
	now      time.Duration // latest reading of the clock
	attempts int
	held     int           // attempts held back because none succeed
	prev     time.Duration // the wait before the present attempt
	paid     retry.Receipt // for the present attempt
	waited   time.Duration
	outcome  outcome.Outcome
	word     outcome.Outcome // of the last attempt that is evidence about the upstream; goes to the breaker if the call fails
	obstacle error           // why there can be no further attempt, whatever the outcome
	last     error           // of the last attempt
	err      error           // what the caller gets
}

// Begin begins a call. It asks no gate yet. The caller must end it: by calling Next until it returns false, or End.
func (u *Upstream) Begin(ctx context.Context, c Call) *Run {
	r := &Run{u: u, call: c, ctx: ctx}
	r.begin()
	return r
}

// begin loads the policy, which applies until the call ends, and computes the deadline: the earlier of the caller's
// and the policy's.
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

// Next waits until the next attempt may be made. It returns false if there is none: the call is over, and Err returns
// its result. If the present attempt was not reported, Next ends the call.
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

// admit asks the gates for one attempt.
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

// earn reports the call's first attempt to the retry budget.
func (r *Run) earn() {
	p := &r.permit
	if b := r.live.budget; b != nil && p.cell >= 0 {
		b.CallIn(p.cell, p.sent)
		return
	}
	r.live.purse.Call(p.sent)
}

// ends returns when the present attempt must end.
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

// leaving returns when the present attempt must end to leave time for another one. It applies only if that leaves the
// present attempt at least twice the time reserved for the other.
func (r *Run) leaving() time.Duration {
	a, sent := r.call.Another, r.permit.sent
	if r.deadline == bucket.Never || r.nested || r.obstacle != nil || r.attempts >= r.plan.retry.Attempts || (r.deadline-sent)/3 < a {
		return bucket.Never
	}
	return r.deadline - a
}

// Context returns the context of the present attempt. It ends with the attempt's timeout or report. A call made with
// it is not retried.
func (r *Run) Context() context.Context {
	if r.attempt == nil {
		r.attempt = &attempt{u: r.u, parent: r.ctx, deadline: r.until, ofCall: r.ofCall()}
	}
	return r.attempt
}

// Timeout returns how long the present attempt may take, measured from its admission, and the error for exceeding it.
// It is for callers that enforce the timeout themselves, without Context.
func (r *Run) Timeout() (time.Duration, error) { return r.until - r.permit.sent, r.why() }

// Left returns the remaining time of the call.
func (r *Run) Left() time.Duration { return r.deadline - r.u.clock.Now() }

// why returns the reason for which the present attempt ends at r.until.
func (r *Run) why() error {
	if r.ofCall() {
		return ErrCallTimeout
	}
	return ErrAttemptTimeout
}

// ofCall reports whether r.until is the end of the call's time rather than of the attempt's.
func (r *Run) ofCall() bool {
	t := r.live.policy.Timeouts.Attempt
	return r.until == r.deadline && (t <= 0 || r.until < later(r.permit.sent, t))
}

// Policy returns the policy that was in force when the call began. It must not be changed.
func (r *Run) Policy() *Policy { return &r.live.policy }

// Classify returns the outcome for an attempt's error under the policy. A nil error is a success.
func (r *Run) Classify(err error) outcome.Outcome {
	if err == nil {
		return outcome.Outcome{Class: outcome.OK}
	}
	if r.attempt != nil {
		err = r.attempt.why(err)
	}
	return r.live.policy.Classify.Error(r.ctx, err)
}

// NoMore states that no attempt can follow the present one, whatever its outcome. It must be called before the
// report. why becomes the reason for giving up.
func (r *Run) NoMore(why error) { r.obstacle = why }

// Answered states that the upstream answered the present attempt, even if the outcome looks like a timeout. The
// concurrency bound then learns from its duration.
func (r *Run) Answered() { r.permit.heard = true }

// Spoiled states that the caller's own fault stopped the present attempt. The concurrency bound then learns nothing
// from it.
func (r *Run) Spoiled() { r.permit.broken = true }

// Slot returns the slot of the present attempt; nil if attempts in flight are not bounded.
func (r *Run) Slot() *Slot {
	p := &r.permit
	if r.slot == nil && p.slot != 0 {
		r.slot = &Slot{flight: p.flight, clock: r.u.clock, breaker: p.breaker, sent: p.sent, slot: p.slot}
		r.slot.told.Add(1)
	}
	return r.slot
}

// ReportStart reports that the response to the present attempt has started. o is the outcome according to its
// headers. The body follows, and ReportEnd must report its end. The call has no further attempt. ReportStart releases
// the slot, and adaptive rates learn from the headers. ReportEnd reports to the counters, events, breaker, limits and
// custom gates. If the outcome is retryable, ReportStart reports the attempt completely.
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

// ReportProgress reports that more of the response's body has arrived. A probe succeeds once its response has been
// arriving for a second: a stream may take minutes, and during a probe no other call is admitted.
func (r *Run) ReportProgress() {
	if r.started && r.permit.given.Probe {
		r.permit.progresses(r.u.clock.Now(), &r.outcome)
	}
}

// ReportEnd reports the end of a response that ReportStart has reported. o is the outcome of the complete attempt.
// Durations in counters and events end with the headers of the response. Only the first report counts.
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

// Report ends the present attempt. It reports the outcome to every gate, to the breaker only when no retry follows,
// and decides whether a retry follows. err is what the call returns if none follows. It is nil if the caller has a
// response, whatever the outcome. Only the first report of an attempt counts.
func (r *Run) Report(o outcome.Outcome, err error) {
	if r.made {
		r.outcome = o
		r.reported(err)
	}
}

// classified is Report with the outcome of Classify. It saves one copy of an outcome, which has eleven words.
func (r *Run) classified(err error) {
	if r.made {
		if r.outcome = (outcome.Outcome{Class: outcome.OK}); err != nil {
			r.outcome = r.Classify(err)
		}
		r.reported(err)
	}
}

// reported is Report for r.outcome.
func (r *Run) reported(err error) {
	r.last = err
	r.report()
	r.decide()
}

// End ends a call that Next has not ended. An attempt without a report, for example after a panic, is reported as
// canceled. A pending retry is not made.
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

// report reports the outcome to every gate, and to the breaker if no attempt can follow.
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

// landed ends the attempt's context and returns its slot to the permit.
func (r *Run) landed() {
	if r.attempt != nil {
		r.attempt.end()
	}
	r.slot.land(&r.permit)
}

// Err returns the result of the call, as Do does. It is nil for a success, and for a last response that the caller
// already has and that is not worth a retry.
func (r *Run) Err() error { return r.err }

// A Trace summarizes a call.
type Trace struct {
	Operation string
	Attempts  int
	Waited    time.Duration // for turns and between attempts
	Outcome   outcome.Outcome
	GaveUp    error // why there was no retry of a retryable attempt
	Probed    bool  // its latest attempt was a breaker's probe, and it found the upstream still down

	Budgets []LimitLevel // the limits in dollars that its latest attempt was charged to, if its response has begun
}

// Trace returns the summary of the call so far.
func (r *Run) Trace() Trace {
	t := Trace{Operation: r.plan.name, Attempts: r.attempts, Waited: r.waited, Outcome: r.outcome, Probed: r.permit.inVain(r.outcome.Class)}
	if g, ok := r.err.(*retry.GaveUpError); ok {
		t.GaveUp = g.Why
	}
	if r.permit.by != nil && r.permit.by.budgets && r.attempts > 0 {
		t.Budgets = r.permit.budgets(r.u.clock.Now())
	}
	return t
}

// subject returns the subject of an event of the call. It allocates, so it is called only if there is a listener.
func (r *Run) subject() Subject { return subject(r.u, r.plan, r.call.ID, r.call.Keys) }

// Do makes a call under the upstream's policy. It waits for its turn, calls fn, and calls it again if a retry is
// worthwhile and safe. The context of fn ends with the attempt's timeout.
//
// Do returns the last attempt's error unchanged if that error cannot be retried. It returns a *retry.GaveUpError if a
// retry was possible but weir did not make it. If no attempt was made, it returns a *Refusal, or the cause of ctx's
// end. If ctx belongs to an attempt of another Do, the inner Do makes a single attempt, and the outer Do retries. An
// error can state its own
// outcome: see outcome.Classifier.
func Do[T any](ctx context.Context, u *Upstream, c Call, fn func(context.Context) (T, error)) (v T, err error) {
	var r Run // like Begin, with one copy of c less
	r.u, r.call, r.ctx = u, c, ctx
	r.begin()
	defer r.End()
	for r.Next() {
		v, err = fn(r.Context())
		r.classified(err)
	}
	return v, r.Err()
}
