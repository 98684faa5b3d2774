package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A step is what the gates say of a call, and so what comes next on its way through them:
//
//	breaker -> pauses -> limits -> in flight -> gates of one's own
//
// Each may let it go on, have it wait, or refuse it. A call that has waited asks again, since what
// the gates before had given may not be good any more. The zero step refuses.
type step struct {
	kind kind
	wait time.Duration // of stepWait for how long; of stepRefuse until it is worth asking again
	why  Reason        // of stepRefuse
}

// A kind says where a step leads. The order matters: what is after stepGo is still on its way.
type kind uint8

const (
	stepRefuse kind = iota // nothing is held any more
	stepGo                 // everything is held that was asked for
	stepWait               // sleep, then ask again
	stepLine               // stand in line
	stepStore              // nothing here said no, but the store has to be asked
	stepMove               // other limits are in force: be charged by them, and ask them
)

// goOn is the step of a gate that has nothing against the call.
var goOn = step{kind: stepGo}

// no is the step that refuses a call, which need not ask again for so long.
func no(why Reason, wait time.Duration) step { return step{wait: wait, why: why} }

// refused reports that the call has its answer and holds nothing; waits, that it holds nothing
// and may yet be allowed.
func (s step) refused() bool { return s.kind == stepRefuse }
func (s step) waits() bool   { return s.kind > stepGo }

// A walk is the way of one attempt through the gates, up to its permit or its refusal. Whatever
// waits notes in now what time it is afterwards.
//
// A walk lives on its caller's stack, and so does the permit as a rule. What outlasts a function
// of the walk must not point to either: both would move to the heap, those of attempts that never
// wait, too. For the same reason the context is passed beside the walk and not within.
type walk struct {
	*Permit
	call     *Call
	start    time.Duration // when the attempt came to the gates
	now      time.Duration // the latest instant that was looked at
	until    time.Duration // a limit makes it wait until then at most; not at all if that is not after now
	deadline time.Duration // the call's own; bucket.Never if it has none
}

// admit passes every gate, waiting for its turn until the deadline at most. The error is a
// *Refusal, one that is ErrTooMuch, that of a program's own gate, or the cause of ctx's end.
func (p *Permit) admit(ctx context.Context, now, deadline time.Duration, c *Call) error {
	w := walk{Permit: p, call: c, start: now, now: now, deadline: deadline}
	w.until = min(deadline, later(now, w.longest()))
	d, err := w.meet(ctx)
	if err == nil && !d.refused() {
		d, err = w.askFirst(ctx)
	}
	if err == nil && !d.refused() {
		d, err = w.pass(ctx, d)
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
	p.ticket.of(p.plan.breakerFor(now, w.call))
	if d := p.ticket.ask(now); d.refused() {
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
		if s := p.stopped(now, false); s.wait > 0 {
			return w.held(s)
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
	for asked := w.now; err == nil && !d.refused(); {
		switch {
		case d.kind == stepMove, d.kind != stepGo && w.charged.moved(w.u.live.Load()):
			d = w.moves()
		case d.kind == stepLine:
			d, err = w.stand(ctx)
		case d.kind == stepStore:
			d, err = w.fetch(ctx)
		case d.kind == stepWait:
			d, err = w.doze(ctx, d.wait)
		case w.now > asked: // it has waited since the breaker was asked
			d, asked = w.hears(), w.now
		case !w.enter(w.now, w.given.Probe):
			d, err = w.board(ctx)
		default:
			return d, nil
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
	if w.attempt > 1 && w.u.bell.tolled.Load() {
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

// soon is when to ask again where nobody knows better.
const soon = time.Second

// nap is how long a call that waits for its turn or for the end of a pause sleeps at most before it
// looks whether it may go sooner.
const nap = time.Second

// doze waits for the end of a pause, and asks again.
func (w *walk) doze(ctx context.Context, d time.Duration) (step, error) {
	opened, err := w.u.bell.sleep(ctx, w.breaker, min(d, nap))
	w.now = w.u.clock.Now()
	if opened && err == nil {
		if d := w.hears(); d.refused() {
			return d, nil
		}
	}
	if err != nil {
		return step{}, err
	}
	return w.turn(), nil
}

// tooLate reports whether a wait has ended because the call's own deadline has passed.
func tooLate(ctx context.Context, now, deadline time.Duration) bool {
	return now >= deadline && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
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

// hears asks the breaker again after a wait: what opened meanwhile must not be called, and a
// ticket of an older generation would count for nothing. Nor is a call made that has waited while
// the upstream drains. If it refuses, nothing is held any more.
func (w *walk) hears() step {
	d := w.ticket.ask(w.now)
	if !d.refused() && w.u.bell.tolled.Load() {
		w.giveBack(w.now)
		d = no(ShuttingDown, soon)
	}
	if d.refused() {
		w.handBack(w.now)
		w.exit()
		w.why = -1
	}
	return d
}

// undo hands back what the gates gave: the attempt is not made.
func (w *walk) undo() {
	w.handBack(w.now)
	w.exit()
	w.giveBack(w.now)
	w.hear(outcome.Outcome{Class: outcome.Canceled})
	w.reports = nil
}

// longest is how long the policy lets a call wait for a limit.
func (w *walk) longest() time.Duration { return max(0, w.plan.live.policy.MaxWait) }

// left is how long the call may still wait for a limit; 0 if it waits for none.
func (w *walk) left() time.Duration { return max(0, w.until-w.now) }
