package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Try asks for one attempt without waiting for a turn. If a fleet shares limits, it may wait a fraction of a second
// for the store. If the attempt is allowed, p becomes its permit: the caller makes the attempt and reports the
// outcome. p may be the zero Permit or a reported one. The caller supplies it so that a decision does not allocate.
// Try does not ask custom gates (Options.Gates), because they may wait.
func (u *Upstream) Try(c Call, p *Permit) Decision {
	if u.pauses.Unmet() {
		_ = u.pauses.meet(context.Background(), 0) // a context that does not end
	}
	now := u.clock.Now()
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	p.recorded.begins(p, u, p.plan, &c, now, false)
	var w walk // set field by field: a literal would be built and copied, which takes as long as half the gates
	w.Permit, w.call, w.now, w.until = p, &c, now, now
	d := w.ask()
	for d.waits() {
		if d.kind == stepStore {
			d, _ = w.fetch(context.Background()) // a context that does not end
		} else {
			d = w.moves()
		}
	}
	if !d.refused() && !p.enter(w.now, p.given.Probe) {
		d = w.full()
	}
	p.sent = w.now
	_ = w.decided(d)
	if d.refused() {
		p.u = nil
		p.limits.Free()
		return Decision{Reason: d.why, RetryAfter: d.wait}
	}
	return Decision{Allowed: true}
}

// Acquire asks for one attempt, and waits for its turn as long as ctx and the policy's MaxWait allow. The caller
// makes the attempt and reports its outcome. The error is a *Refusal or the cause of ctx's end.
func (u *Upstream) Acquire(ctx context.Context, c Call) (*Permit, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	p := new(Permit)
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	until := bucket.Never
	if at, ok := u.clock.Deadline(ctx); ok {
		until = at
	}
	now := u.clock.Now()
	p.recorded.begins(p, u, p.plan, &c, now, false)
	if err := p.admit(ctx, now, until, p.longest(), &c); err != nil {
		if u.options.Events.Recorded != nil {
			p.recorded.left(p, u.clock.Now(), err)
		}
		p.limits.Free()
		return nil, err
	}
	p.leash()
	return p, nil
}

// admit asks every gate. It waits at most until the deadline, and for limits at most longest. The error is a
// *Refusal, an error that wraps ErrTooMuch, the error of a custom gate, or the cause of ctx's end.
func (p *Permit) admit(ctx context.Context, now, deadline, longest time.Duration, c *Call) error {
	var w walk
	w.Permit, w.call, w.start, w.now, w.deadline = p, c, now, now, deadline
	w.until = min(deadline, later(now, longest))
	counted := p.counted
	d, err := w.meet(ctx)
	if err == nil && !d.refused() {
		d, err = w.askFirst(ctx)
	}
	if err == nil && !d.refused() {
		d, err = w.pass(ctx, d)
	}
	if err == nil && d.why == RateLimited && !c.Part && p.plan.live.policy.AskAgain.Attempts > 1 {
		d, err = w.asksLater(ctx, d, counted)
	}
	p.waited, p.sent = w.now-w.start, w.now
	if err == nil && !d.refused() && len(p.u.options.Gates) > 0 {
		d, err = w.askGates(ctx)
	}
	if err != nil {
		return err
	}
	told := w.decided(d)
	if !d.refused() {
		return nil
	}
	return d.err(p, w.now, told)
}

// ask asks the gates in order up to the limits. The slot is taken last, because other calls could use it while the
// limits make this one wait. Custom gates come after all others, because they may wait for any time.
func (w *walk) ask() step {
	// Each attempt passes here, and most proceed without a wait. Loading the permit once saves 5% of a decision.
	p, now := w.Permit, w.now
	p.u.latest.saw(now)
	if d := w.askBreaker(); d.refused() {
		return d
	}
	if v := p.u.live.Load(); v != p.by.live { // since the call began, or while it waited
		p.by = v.plan(w.call)
	}
	p.charge(now, w.call)
	return w.turn()
}

// turn checks the pauses and takes the call's cost from all limits or none, unless other calls wait for it already.
// It runs first in ask and again after each wait.
func (w *walk) turn() step {
	p, now := w.Permit, w.now
	switch {
	case p.charged.moved(p.u.live.Load()):
		return step{kind: stepMove}
	case p.u.pauses.Any(now):
		if s := p.stopped(now, false); s.wait > 0 && !w.probes(s) {
			return w.held(s)
		}
	}
	if p.u.resting.Load() > 0 {
		switch of := p.concern().behind(&p.limits); {
		case of == (pause.Subject{}):
		case w.left() > 0:
			return step{kind: stepRest}
		default: // the call waits for nothing: calls that wait for the pause are asked first
			p.u.lines.KickOne(now, of)
		}
	}
	if p.limits.Len() == 0 {
		return goOn
	}
	if !p.u.lines.Empty() && w.behind() {
		return w.stepBehind()
	}
	if v := p.take(now); !v.OK {
		return w.lacks(v)
	}
	return goOn
}

// pass follows the steps of the gates, waiting where they require it, until the call has passed or is refused.
func (w *walk) pass(ctx context.Context, d step) (_ step, err error) {
	if w.call.WaitingRoom != nil {
		defer w.leaveRoom()
	}
	for asked := w.now; err == nil && !d.refused(); {
		switch {
		case d.kind == stepMove, d.kind != stepGo && w.charged.moved(w.u.live.Load()):
			d = w.moves()
		case d.kind != stepGo && !w.enterRoom():
			d = w.refuseCrowded()
		case d.kind == stepLine, d.kind == stepRest:
			d, err = w.stand(ctx, d.kind == stepRest)
		case d.kind == stepStore:
			d, err = w.fetch(ctx)
		case w.now > asked: // it has waited since the breaker was asked
			d, asked = w.hears(), w.now
		case w.enter(w.now, w.given.Probe):
			return d, nil
		case !w.enterRoom():
			d = w.refuseCrowded()
		default:
			d, err = w.board(ctx)
		}
	}
	switch {
	case err == nil:
		return d, nil
	case tooLate(ctx, w.now, w.deadline):
		return w.tooSlow(), nil
	}
	w.undo()
	return d, err
}

// meet waits until this process knows the fleet's pauses. It refuses a retry while the upstream drains.
func (w *walk) meet(ctx context.Context) (step, error) {
	if w.attempt > 1 && w.u.sleepers.closed.Load() {
		return no(ShuttingDown, soon), nil
	}
	if !w.u.pauses.Unmet() {
		return goOn, nil
	}
	// Otherwise a new process would call an upstream that the fleet has paused.
	err := w.u.pauses.meet(ctx, w.left())
	w.now = w.u.clock.Now()
	if err == nil {
		return goOn, nil
	}
	if !tooLate(ctx, w.now, w.deadline) {
		return step{}, err
	}
	w.lack = limit.LacksStore
	return no(RateLimited, soon), nil
}

// A call that arrives when the open time of a shared breaker ends waits briefly for the lease of the one probe,
// instead of being refused with a short RetryAfter.
const (
	leaseWait = 100 * time.Millisecond
	leaseAsks = 3
)

// askFirst runs ask, and repeats it a few times while the fleet decides which process probes.
func (w *walk) askFirst(ctx context.Context) (step, error) {
	d := w.ask()
	for range leaseAsks {
		if d.why != CircuitOpen || w.u.options.Fleet == nil || d.wait > min(leaseWait, w.left()) {
			break
		}
		err := w.u.clock.Sleep(ctx, d.wait)
		w.now = w.u.clock.Now()
		if err != nil && !tooLate(ctx, w.now, w.deadline) {
			return step{}, err
		}
		if err != nil {
			break
		}
		d = w.ask()
	}
	return d, nil
}

// tooSlow refuses a call whose deadline passed while it waited for its turn. It was not sent, so this is no evidence
// about the upstream.
func (w *walk) tooSlow() step {
	if i := w.shared(); w.why < 0 && int(i) < w.limits.Len() && w.limits.Charge(int(i)).Registry.Shared() {
		w.why = i // it waited for the store
	}
	switch {
	case w.why >= 0:
		c, lacks := w.limits.Charge(int(w.why)), w.limits.Lacks(w.now, int(w.why))
		wait := max(c.Registry.Get(w.now, c.Key).Ask(w.now, c.Cost), soon, lacks.Wait)
		return w.judge(limit.Verdict{Wait: wait, Cause: limit.Cause{Why: int(w.why), Lack: lacks.Lack}})
	case w.flight != nil && w.slot == 0:
		return w.full()
	}
	w.undo()
	return no(RateLimited, soon)
}
