package weir

import (
	"context"
	"errors"
	"time"
)

// ownLate is how long gates of the program's own may take, and the call go by what the limits gave before: it
// is allowed as of then. What they gave it for longer would go later than they may: they are asked again.
const ownLate = 10 * time.Millisecond

// askGates asks the gates of the program's own in their order, each of which may wait: its context ends
// with the call's, and when the breaker opens. When they have waited, breaker and pauses are asked
// again, and after ownLate the limits. When one says no, or panics, all that the call holds goes back.
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
		w.until = w.now // it waits no more
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

// takeAgain gives back what the limits gave before the gates of the program's own made the call wait, and
// takes it again, as of now: the call may have to wait once more, and what those gates gave is held meanwhile.
func (w *walk) takeAgain(ctx context.Context) (d step, err error) {
	w.handBack(w.now)
	w.until, w.sent = min(w.deadline, later(w.now, w.longest())), w.now
	if d = w.hears(); !d.refused() {
		d = w.turn()
	}
	if d.kind != stepGo {
		w.exit() // others can use the slot meanwhile
	}
	d, err = w.pass(ctx, d)
	w.waited, w.sent = w.waited+w.now-w.sent, w.now
	return d, err
}

// ownRefused counts and tells of a refusal by a gate of the program's own, as though a gate of weir had
// refused. Other errors of such a gate are the caller's alone.
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
