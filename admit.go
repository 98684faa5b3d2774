package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/pause"
)

// Try asks for one attempt and waits for no turn; where a fleet shares limits it may wait for an
// answer of the store, for fractions of a second. If the attempt is allowed, p is the permit:
// the caller makes the attempt and reports how it ended. p may be the zero
// Permit or one that has been reported; it is the caller's, so that a decision
// allocates nothing. The program's own gates (Options.Gates) are not asked: they may
// wait.
func (u *Upstream) Try(c Call, p *Permit) Decision {
	if u.pauses.Unmet() {
		_ = u.pauses.meet(context.Background(), 0) // a context that does not end
	}
	now := u.clock.Now()
	p.begin(u, u.live.Load().plan(&c), &c, 1)
	p.recorded.begins(p, u, p.plan, &c, now, false)
	var w walk // field by field: a literal is made elsewhere and copied, which takes as long as half the gates
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

// Acquire asks for one attempt and waits for its turn, as long as ctx and the
// policy's longest wait allow. The caller makes the attempt and reports how it
// ended. The error is a *Refusal, or the cause of ctx's end.
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

// admit passes every gate, waiting for its turn until the deadline at most, and for a limit as long as it may. The error is a
// *Refusal, one that is ErrTooMuch, that of a program's own gate, or the cause of ctx's end.
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

// ask asks the gates in their order, up to the limits. A place in flight is taken last, since
// others could use it while the limits make the call wait; gates of one's own may wait as long
// as they like, and so are asked when all others have let the call go on.
func (w *walk) ask() step {
	// Each attempt comes by here, and nearly all go on at once: the permit is looked up once, which
	// saves a twentieth of a decision.
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

// turn asks pauses, and takes what the call costs of all limits, or of none, unless others wait for it
// already: at first, and again after each wait.
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
		default: // it waits for nobody: those who rest are asked first
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

// pass waits where the gates say so, and passes them: each case is where a step leads.
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

// meet waits until this process has heard once which pauses there are. An attempt that
// follows another is not made while the upstream drains.
func (w *walk) meet(ctx context.Context) (step, error) {
	if w.attempt > 1 && w.u.sleepers.closed.Load() {
		return no(ShuttingDown, soon), nil
	}
	if !w.u.pauses.Unmet() {
		return goOn, nil
	}
	// Without it a process that begins would call an upstream that the fleet has paused.
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

// A call that comes when the open time of a fleet's breaker is over waits a little for the
// lease of the one probe, in place of being told to come again so soon.
const (
	leaseWait = 100 * time.Millisecond
	leaseAsks = 3
)

// askFirst asks for the first time, or some times while the fleet makes out who probes.
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

// tooSlow is the step of a call whose own deadline has passed while it waited for its
// turn. It was not sent: that is a refusal, and says nothing of the upstream.
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
