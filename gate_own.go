package weir

import (
	"context"
	"errors"
	"time"
)

// ownLate is how long custom gates may take without the limits being asked again. The call is admitted as of the
// earlier instant. Units that were granted before a longer wait would be used too late.
const ownLate = 10 * time.Millisecond

// askGates asks the custom gates in order. Each may wait. Its context ends with the call's, and when the breaker
// opens. If the gates have waited, breaker and pauses are asked again, and after ownLate the limits. If a gate
// refuses or panics, the call returns all that it holds.
func (w *walk) askGates(ctx context.Context) (d step, err error) {
	admitted := false
	defer func() { // also if a gate panics
		if !admitted {
			w.undo()
		}
	}()
	inner, opens, done := w.u.sleepers.context(ctx, w.breaker)
	defer done()
	for _, g := range w.u.options.Gates {
		report, err := g.Admit(inner, *w.call)
		if err != nil && opens.opened.Load() && ctx.Err() == nil {
			w.now = w.u.clock.Now()
			if d = w.hears(); d.refused() {
				return d, nil
			}
		}
		if err != nil {
			w.ownRefused(err)
			return d, err
		}
		if report != nil {
			w.reports = append(w.reports, report)
		}
	}
	late := w.u.clock.Now() - w.now
	w.now += late
	switch d = goOn; {
	case late > ownLate:
		d, err = w.takeAgain(ctx)
	case late > 0:
		w.until = w.now // it must not wait again
		if d = w.hears(); d.refused() {
			break
		}
		if s := w.stopped(w.now, true); s.wait > 0 { // it began while the gates waited
			d = w.held(s)
		}
	}
	admitted = err == nil && !d.refused()
	return d, err
}

// takeAgain returns the units from before the wait in custom gates and takes them again at the present instant. The
// call may have to wait once more, and keeps what the gates gave.
func (w *walk) takeAgain(ctx context.Context) (d step, err error) {
	w.handBack(w.now)
	w.until, w.sent = min(w.deadline, later(w.now, w.longest())), w.now
	if d = w.hears(); !d.refused() {
		d = w.turn()
	}
	if d.kind != stepGo {
		w.exit() // other calls can use the slot meanwhile
	}
	d, err = w.pass(ctx, d)
	w.waited, w.sent = w.waited+w.now-w.sent, w.now
	return d, err
}

// ownRefused counts and reports a refusal by a custom gate like one by weir. Other errors of a custom gate are
// returned to the caller only.
func (w *walk) ownRefused(err error) {
	r, ok := errors.AsType[*Refusal](err)
	if !ok {
		return
	}
	by, untold := w.plan.tallies.of(r.Limit), true
	if by != nil {
		by.waitedFor(w.waited, w.limits.Late())
		untold = by.refuses(w.cell, w.now, r.Reason)
	}
	e := &w.u.options.Events
	if e.Decided != nil {
		tell(e.Decided, Decided{Subject: w.subject(w.u), Refusal: r, Limit: r.Limit, Waited: w.waited, Late: w.limits.Late()})
	}
	if untold && e.Refused != nil {
		told := refused(w.Permit, w.u.clock.Now(), r.Reason)
		told.Limit, told.Key, told.Want, told.RetryAfter, told.ResetAt = r.Limit, r.Key, r.Want, r.RetryAfter, r.ResetAt()
		by.tellRefused(e.Refused, told)
	}
}
