package weir

import (
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/retry"
)

// futile reports whether a retry whose time has come would most likely fail, as
// everything does; see retry.Holdoff. It is sent all the same if the upstream has said
// itself when to come, or if the breaker will have its say.
func (r *Run) futile() bool {
	return !r.told() && !r.plan.hold.Allows(r.now) && r.permit.breaker.Look(r.now).Phase == breaker.Closed
}

// told reports whether the upstream has said itself when to come.
func (r *Run) told() bool { return r.outcome.Hint.Said && r.outcome.Hint.After > 0 }

// foundOut reports whether the call is a probe that has seen the upstream fail as
// everything did before. Its other attempts are not made: they would tell no more, and
// the next probe waits for its end.
func (r *Run) foundOut() bool {
	return r.permit.given.Probe && r.plan.hold.Holds() && !r.told()
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
