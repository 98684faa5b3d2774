package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A step is a decision of the gates, and what follows on the call's path through them:
//
//	breaker -> pauses -> limits -> in flight -> custom gates
//
// Each gate may let the call proceed, make it wait, or refuse it. A call that has waited asks again, because earlier
// grants may no longer be valid. The zero step refuses.
type step struct {
	kind kind
	wait time.Duration // of stepRefuse: RetryAfter
	why  Reason        // of stepRefuse

	crowded bool // of stepRefuse: the waiting room of low priority is full
}

// A kind is the kind of a step. The order matters: kinds after stepGo are not decided yet.
type kind uint8

const (
	stepRefuse kind = iota // the call holds nothing
	stepGo                 // the call holds everything that it asked for
	stepRest               // wait in the queue of a pause
	stepLine               // wait in the queue of a limit
	stepStore              // no local limit refuses, but the store must be asked
	stepMove               // other limits are in force: charge the call to them, and ask them
)

// goOn is the step of a gate that lets the call proceed.
var goOn = step{kind: stepGo}

// no returns the step that refuses a call, with its RetryAfter.
func no(why Reason, wait time.Duration) step { return step{wait: wait, why: why} }

// refused reports that the call is decided and holds nothing. waits reports that it holds nothing and may yet be
// admitted.
func (s step) refused() bool { return s.kind == stepRefuse }
func (s step) waits() bool   { return s.kind > stepGo }

// A walk is the path of one attempt through the gates, until its permit or refusal. A method that waits updates now.
//
// A walk is on its caller's stack, and usually so is the permit. Nothing that outlives a method of the walk may point
// to either: both would move to the heap, also for attempts that never wait. For the same reason the context is a
// parameter and not a field.
type walk struct {
	*Permit
	call     *Call
	start    time.Duration // when the gates were first asked
	now      time.Duration // latest reading of the clock
	until    time.Duration // how long it may wait for a limit; not at all unless later than now
	deadline time.Duration // of the call; bucket.Never if it has none
	inRoom   bool          // it has entered its Call.WaitingRoom
}

// soon is the RetryAfter if no gate has a better estimate.
const soon = time.Second

// nap is the longest that a waiting call sleeps before it checks again whether it may proceed.
const nap = time.Second

// tooLate reports whether a wait has ended because the call's deadline has passed.
func tooLate(ctx context.Context, now, deadline time.Duration) bool {
	return now >= deadline && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// hears asks the breaker again after a wait. The breaker may have opened, and results of an older generation's ticket
// do not count. It also refuses a call that has waited while the upstream drains. After a refusal the call holds
// nothing.
func (w *walk) hears() step {
	d := w.hearsBreaker()
	if !d.refused() && w.u.sleepers.closed.Load() {
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

// undo returns what the gates gave, because the attempt is not made.
func (w *walk) undo() {
	w.handBack(w.now)
	w.exit()
	w.giveBack(w.now)
	if w.reports != nil {
		w.hear(outcome.Outcome{Class: outcome.Canceled})
		w.reports = nil
	}
}

// longest returns how long the policy lets a call wait for a limit.
func (p *Permit) longest() time.Duration {
	if p.plan.live.policy.AskAgain.Attempts > 0 {
		return 0
	}
	return max(0, p.within(p.plan.live.policy.MaxWait))
}

// within returns d, or the call's remaining wait if that is shorter.
func (p *Permit) within(d time.Duration) time.Duration {
	if p.maxWait > 0 {
		return min(d, p.maxWait)
	}
	return d
}

// left returns how long the call may still wait for a limit; 0 if it may not wait.
func (w *walk) left() time.Duration { return max(0, w.until-w.now) }
