package weir

import (
	"context"
	"errors"
	"time"

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
	wait time.Duration // of stepRefuse: until it is worth asking again
	why  Reason        // of stepRefuse

	crowded bool // of stepRefuse: as many calls of low priority wait as may
}

// A kind says where a step leads. The order matters: what is after stepGo is still on its way.
type kind uint8

const (
	stepRefuse kind = iota // nothing is held any more
	stepGo                 // everything is held that was asked for
	stepRest               // stand in the line of those whom a pause holds
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
	inRoom   bool          // it has entered its Call.WaitingRoom
}

// soon is when to ask again where nobody knows better.
const soon = time.Second

// nap is how long a call that waits for its turn or for the end of a pause sleeps at most before it
// looks whether it may go sooner.
const nap = time.Second

// tooLate reports whether a wait has ended because the call's own deadline has passed.
func tooLate(ctx context.Context, now, deadline time.Duration) bool {
	return now >= deadline && errors.Is(context.Cause(ctx), context.DeadlineExceeded)
}

// hears asks the breaker again after a wait: what opened meanwhile must not be called, and a
// ticket of an older generation would count for nothing. Nor is a call made that has waited while
// the upstream drains. If it refuses, nothing is held any more.
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

// undo hands back what the gates gave: the attempt is not made.
func (w *walk) undo() {
	w.handBack(w.now)
	w.exit()
	w.giveBack(w.now)
	if w.reports != nil {
		w.hear(outcome.Outcome{Class: outcome.Canceled})
		w.reports = nil
	}
}

// longest is how long the policy lets a call wait in line for a limit.
func (p *Permit) longest() time.Duration {
	if p.plan.live.policy.AskAgain.Attempts > 0 {
		return 0
	}
	return max(0, p.within(p.plan.live.policy.MaxWait))
}

// within returns d, or how long the call may wait at all if that is shorter.
func (p *Permit) within(d time.Duration) time.Duration {
	if p.maxWait > 0 {
		return min(d, p.maxWait)
	}
	return d
}

// left is how long the call may still wait for a limit; 0 if it waits for none.
func (w *walk) left() time.Duration { return max(0, w.until-w.now) }
