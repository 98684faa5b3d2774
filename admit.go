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
// Each may let it go on, have it wait, or refuse it. Who has waited asks again, since what the
// gates before had given may not be good any more. See Permit.ask and Permit.waits.
type step struct {
	kind kind
	wait time.Duration // of stepWait for how long; of stepRefuse until it is worth asking again
	why  Reason        // of stepRefuse
}

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

func (s step) refused() bool { return s.kind == stepRefuse }

// admit passes every gate, waiting for its turn until the instant at most.
func (p *Permit) admit(ctx context.Context, now, until time.Duration, c *Call) error {
	start := now
	d, now, err := p.meet(ctx, start, until)
	if err == nil && !d.refused() {
		d, now, err = p.askFirst(ctx, start, now, until, c)
	}
	if err == nil && !d.refused() {
		d, now, err = p.waits(ctx, d, now, min(until, later(start, p.longest())), min(until, later(start, p.plan.live.slotWait)), c)
		switch p.waited = now - start; {
		case err != nil && tooLate(ctx, now, until):
			d, err = p.tooSlow(now), nil
		case err != nil:
			p.undo(now)
		}
	}
	if p.sent = now; err == nil && !d.refused() && len(p.u.options.Gates) > 0 {
		d, err = p.askGates(ctx, now, *c)
	}
	if err != nil {
		return err
	}
	if p.decides(p.sent, d); !d.refused() {
		p.starts()
		if p.u.options.Events.Decided == nil {
			return nil
		}
	}
	p.tellRefused(now, d)
	return p.decided(now, d)
}

// ask asks the gates in their order, but for a slot and those of the program's own.
func (p *Permit) ask(now, patience time.Duration, c *Call) step {
	p.sent = now
	p.u.decides(now)
	p.ticket.of(p.plan.breakerFor(now, c))
	if d := p.ticket.ask(now); d.refused() {
		return d
	}
	if v := p.u.live.Load(); v != p.by.live { // since the call began, or while it waited
		p.by = v.plan(c)
	}
	p.charge(now, c)
	return p.turn(now, patience)
}

// meet waits until this process has heard once which pauses there are. An attempt that
// follows another is not made while the upstream drains.
func (p *Permit) meet(ctx context.Context, now, until time.Duration) (step, time.Duration, error) {
	if p.attempt > 1 && p.u.drains.Load() {
		return no(ShuttingDown, soon), now, nil
	}
	if !p.u.pauses.Unmet() {
		return goOn, now, nil
	}
	start, err := now, p.u.meet(ctx, p.patience(now, until))
	now = p.u.clock.Now()
	if p.waited = now - start; err == nil {
		return goOn, now, nil
	}
	if !tooLate(ctx, now, until) {
		return step{}, now, err
	}
	p.lack = limit.LacksStore
	return no(RateLimited, soon), now, nil
}

// Who comes when the open time of a fleet's breaker is over waits a little for the
// lease of the one probe, in place of being told to come again so soon.
const (
	leaseWait = 100 * time.Millisecond
	leaseAsks = 3
)

// askFirst asks for the first time, or some times while the fleet makes out who probes.
func (p *Permit) askFirst(ctx context.Context, start, now, until time.Duration, c *Call) (step, time.Duration, error) {
	d := p.ask(now, p.patience(now, until), c)
	for range leaseAsks {
		if d.why != CircuitOpen || p.u.options.Fleet == nil || d.wait > leaseWait || d.wait > p.patience(now, until) {
			break
		}
		err := p.u.clock.Sleep(ctx, d.wait)
		now = p.u.clock.Now()
		if p.waited = now - start; err != nil && !tooLate(ctx, now, until) {
			return step{}, now, err
		}
		if err != nil {
			break
		}
		d = p.ask(now, p.patience(now, until), c)
	}
	return d, now, nil
}

// waits passes the gates that make the call wait, until the instant at most, or until the
// other for a slot. Once it has waited for a slot, the limits' time begins anew.
func (p *Permit) waits(ctx context.Context, d step, now, until, slot time.Duration, c *Call) (_ step, _ time.Duration, err error) {
	for asked := now; !d.refused() && err == nil; {
		switch {
		case d.kind == stepMove, d.kind != stepGo && p.moved():
			d = p.moves(now, max(0, until-now), c)
		case d.kind == stepLine:
			d, now, err = p.stand(ctx, now, until, c)
		case d.kind == stepStore:
			d, now, err = p.fetch(ctx, now, max(0, until-now), c.Priority)
		case d.kind == stepWait:
			d, now, err = p.doze(ctx, until, d.wait)
		case now > asked:
			d, asked = p.hears(now), now
		case !p.enter(now, p.given.Probe):
			d, now, err = p.board(ctx, now, slot, c)
			until = min(slot, max(until, later(now, p.longest())))
		default:
			return d, now, nil
		}
	}
	return d, now, err
}

// doze waits for the end of a pause, and asks again.
func (p *Permit) doze(ctx context.Context, until, d time.Duration) (step, time.Duration, error) {
	opened, err := p.u.sleep(ctx, p.breaker, min(d, nap))
	now := p.u.clock.Now()
	if opened && err == nil {
		if d := p.hears(now); d.refused() {
			return d, now, nil
		}
	}
	if err != nil {
		return step{}, now, err
	}
	return p.turn(now, max(0, until-now)), now, nil
}

// tooSlow is the step of a call whose own deadline has passed while it waited for its
// turn. It was not sent: that is a refusal, and says nothing of the upstream.
func (p *Permit) tooSlow(now time.Duration) step {
	if i := p.shared(); p.why < 0 && int(i) < p.limits.Len() && p.limits.Charge(int(i)).Registry.Shared() {
		p.why = i // it waited for the store
	}
	if p.why >= 0 {
		c, w := p.limits.Charge(int(p.why)), p.limits.Lacks(now, int(p.why))
		return p.judge(now, limit.Verdict{Wait: max(c.Registry.Get(now, c.Key).Ask(now, c.Cost), soon, w.Wait), Cause: limit.Cause{Why: int(p.why), Lack: w.Lack}})
	}
	if p.flight != nil && p.slot == 0 {
		return p.full(now)
	}
	p.undo(now)
	return no(RateLimited, soon)
}

// soon is when to ask again where nobody knows better.
const soon = time.Second

// nap is how long a call that waits for its turn or for the end of a pause sleeps at most before it
// looks whether it may go sooner.
const nap = time.Second

// tooLate reports whether a wait has ended because the call's own deadline has passed.
func tooLate(ctx context.Context, now, until time.Duration) bool {
	return now >= until && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// reconsider asks the breaker again after a wait: what opened meanwhile must not
// be called, and a ticket of an older generation would count for nothing. Nor is a call made
// that has waited while the upstream drains.
func (p *Permit) reconsider(now time.Duration) step {
	d := p.ticket.ask(now)
	if !d.refused() && p.u.drains.Load() {
		p.giveBack(now)
		d = no(ShuttingDown, soon)
	}
	if d.refused() {
		p.handBack(now)
		p.why = -1
	}
	return d
}

// handBack gives back what the limits gave, and lets those have it who wait.
func (p *Permit) handBack(now time.Duration) {
	if p.limits.Drop(now) {
		p.kick(p.u, now)
	}
}

// undo hands back what the gates gave: the attempt is not made.
func (p *Permit) undo(now time.Duration) {
	p.handBack(now)
	p.exit()
	p.giveBack(now)
	for _, report := range p.reports {
		report(outcome.Outcome{Class: outcome.Canceled})
	}
	p.reports = nil
}

func (p *Permit) longest() time.Duration { return max(0, p.plan.live.policy.MaxWait) }

// patience is how long the call may wait for a turn.
func (p *Permit) patience(now, until time.Duration) time.Duration {
	return max(0, min(p.longest(), until-now))
}
