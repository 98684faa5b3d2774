package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/limit/pause"
)

// errMoved ends the wait of calls whose limits have changed.
var errMoved = errors.New("other limits are in force")

// stand waits in the queue of the limit w.why or, if rests is set, of a pause, and moves between queues as necessary.
// The queue's driver asks the limits for it (waiter.Ask), so that after a successful wait the call holds all units.
// Otherwise the turn cannot come in time, a pause holds the call, the breaker has opened, other limits are in force,
// the upstream drains, or the caller has left.
func (w *walk) stand(ctx context.Context, rests bool) (step, error) {
	if w.why < 0 && !rests {
		if d, err := w.askStoreFirst(ctx); err != nil || d.kind != stepLine {
			return d, err
		}
	}
	s := w.newWaiter(w.call)
	defer s.waitsFor(-1)
	if rests && !s.finds(w.now) {
		return w.turn(), nil
	}
	for {
		place, err := w.u.lines.Wait(ctx, w.now, &s.call, s.spot(w.now))
		w.now = w.u.clock.Now()
		w.limits, w.why, w.came, w.probing = s.limits, int32(s.at), s.call.Came, s.probing
		d, err := w.stood(ctx, s, place, err)
		if err != nil || d.kind != stepLine {
			return d, err
		}
		if s.call.Recheck = s.unheard; s.unheard && w.guessed { // only now can the wait be estimated
			w.limits.Fit(w.now)
		}
		s.limits = w.limits
	}
}

// stood returns the next step of a call whose wait in a queue has ended with err. stepLine means to wait again.
func (w *walk) stood(ctx context.Context, s *waiter, place line.Place, err error) (step, error) {
	switch {
	case err == nil && s.call.Away():
		return w.fetchInTurn(ctx, s)
	case err == nil:
		return goOn, nil
	case errors.Is(err, line.ErrRefused):
		return w.ends(ctx, s, place)
	case errors.Is(err, errOpened), errors.Is(err, errMoved):
		return w.roused(), nil
	case errors.Is(err, line.ErrLate), errors.Is(err, line.ErrFull), w.now >= w.until: // the context may have ended at its deadline
		if s.resting() {
			return w.restedTooLong(s), nil
		}
		return w.tooLate(s, place), nil
	}
	return step{}, err
}

// finds selects the queue of the pause that holds the call, or of one for which earlier calls wait. It returns false
// if there is none: the pause is over.
func (s *waiter) finds(now time.Duration) bool {
	of := s.concern.stopped(now, &s.limits, false).of
	if of == (pause.Subject{}) {
		of = s.concern.behind(&s.limits)
	}
	if of == (pause.Subject{}) {
		return false
	}
	s.restsBy(of)
	return true
}

// askStoreFirst asks the store for units that are available now, together with all other calls that ask. If there are
// too few, the call joins a queue.
func (w *walk) askStoreFirst(ctx context.Context) (step, error) {
	v, opened, err := w.askStore(ctx, w.now, -1)
	switch {
	case err != nil:
		return step{}, err
	case opened:
		if d := w.roused(); d.kind != stepLine {
			return d, nil
		}
	case v.OK && w.isHeld():
		w.handBack(w.now)
		return step{kind: stepRest}, nil
	case v.OK:
		if v = w.limits.Take(w.now); v.OK {
			return goOn, nil
		}
	}
	if w.why = int32(v.Why); v.Ask || opened {
		w.why = w.shared()
	}
	return step{kind: stepLine}, nil
}

// fetchInTurn asks the store for a call at the head of its queue. If the units are too few for another limit by then,
// the call returns to its position.
func (w *walk) fetchInTurn(ctx context.Context, s *waiter) (d step, err error) {
	at := -1
	if s.few { // other calls of the queue wait for it
		at = s.at
	}
	went := false // it stays false if the store's client panics
	defer func() { w.u.lines.Back(w.now, &s.call, went) }()
	v, opened, err := w.askStore(ctx, s.call.Until, at)
	d = step{kind: stepLine}
	switch {
	case err != nil:
		return step{}, err
	case opened:
		d = w.roused()
	case !v.OK && at >= 0 && v.Lack == limit.LacksNothing && v.Wait <= s.call.Until-w.now:
		s.lacks(w.now, v) // it waits there, and blocks no other call
	case !v.OK:
		w.place, w.waiting = 1, 1
		d = w.judge(v)
	case w.isHeld():
		w.handBack(w.now)
	case w.take(w.now).OK:
		d = goOn
	}
	went = d.kind == stepGo
	return d, nil
}

// isHeld reports whether a pause that holds the call began while the store was asked. Its units are then for other
// calls.
func (w *walk) isHeld() bool { return w.u.pauses.Any(w.now) && w.stopped(w.now, false).wait > 0 }

// roused returns the next step of a call that was woken because its breaker opened, its limits changed or the
// upstream drains. The call may be the probe, and then has to queue again.
func (w *walk) roused() step {
	if d := w.hears(); d.refused() {
		return d
	}
	if w.charged.moved(w.u.live.Load()) {
		return step{kind: stepMove}
	}
	return step{kind: stepLine}
}

// ends returns the next step of a call at the head of a queue that must not wait there.
func (w *walk) ends(ctx context.Context, s *waiter, at line.Place) (step, error) {
	switch v := s.verdict; {
	case s.stop.wait > 0:
		return w.held(s.stop), nil
	case s.over(w.now):
		return w.roused(), nil
	case v.Wait > w.left() && s.yields:
		s.at = v.Why
		return w.tooLate(s, at), nil
	case v.Wait > w.left():
		w.place, w.waiting = 1, int32(at.Waiting)
		return w.judge(v), nil
	}
	return w.turn(), nil
}

// restedTooLong refuses a call that cannot wait longer for a pause, or for which the queue has no room.
func (w *walk) restedTooLong(s *waiter) step {
	stop := s.concern.stopped(w.now, &s.limits, false)
	if stop.wait == 0 { // it has just ended
		return w.tooSlow()
	}
	w.why = int32(stop.charge)
	w.undo()
	return w.refusedBy(stop)
}

// tooLate refuses a call whose turn did not or cannot come in time. RetryAfter is when its turn would have come,
// after all calls before it, at the rate of the limit.
func (w *walk) tooLate(s *waiter, at line.Place) step {
	w.place, w.waiting = int32(at.Place), int32(at.Waiting)
	if w.guessed {
		w.limits.Fit(w.now) // to what the limit holds now
	}
	c := w.limits.Charge(s.at)
	wait := max(at.Due-w.now, c.Registry.Get(w.now, c.Key).After(w.now, at.Units, c.Cost))
	if wait <= 0 || s.yields { // there are enough units, but no call has asked yet or they are for other calls
		wait = max(wait, takes(w.now, &w.limits, s.at))
	}
	lacks := w.limits.Lacks(w.now, s.at)
	return w.judge(limit.Verdict{Wait: max(wait, lacks.Wait), Cause: limit.Cause{Why: s.at, Lack: lacks.Lack}})
}
