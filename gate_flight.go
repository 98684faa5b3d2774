package weir

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/limit/line"
)

// Errors that end the wait for a slot, in addition to the queue's errors.
var (
	// errOpened ends the wait of calls whose breaker has opened, and all waits when the upstream drains.
	errOpened = errors.New("the breaker has opened")

	// errUnbound ends the wait for a slot of a bound that the new policy does not have.
	errUnbound = errors.New("the bound is gone")
)

// A boarder is a call that waits for a slot, ordered by priority like calls that wait for a limit. It does not point
// to the permit, which would then move to the heap, also for calls that never wait.
type boarder struct {
	call    line.Call
	bound   *inflight.Bound
	breaker *breaker.Breaker
	slot    inflight.Slot
}

// Ask implements line.Asker. It may run on another goroutine.
func (b *boarder) Ask(now, _ time.Duration) line.Step {
	var ok bool
	if b.slot, ok = b.bound.Take(now); ok {
		return line.Step{Kind: line.Go}
	}
	return line.Step{Kind: line.Wait, For: b.bound.Next(now) - now}
}

// board waits for a slot and then asks the limits again. Their units were returned before the wait, so that other
// calls can use them. The time to wait for limits starts again.
func (w *walk) board(ctx context.Context) (step, error) {
	f, until := w.flight, min(w.deadline, later(w.start, w.within(w.plan.live.slotWait)))
	w.handBack(w.now)
	b := &boarder{bound: f.bound, breaker: w.breaker}
	b.call = line.Call{Asker: b, Flow: cmp.Or(w.call.Caller, w.plan.flow(w.call)), Until: until, Priority: w.by.linePriority(w.call)}
	place, err := f.line.Join(ctx, w.now, &b.call)
	w.now, w.slot = w.u.clock.Now(), b.slot
	w.until = min(until, max(w.until, later(w.now, w.longest())))
	if err != nil && ctx.Err() != nil {
		f.bound.GaveUp(w.now)
	}
	switch {
	case err == nil:
		return w.boarded(), nil
	case errors.Is(err, errOpened):
		return w.hears(), nil
	case errors.Is(err, errUnbound):
		w.flight = w.plan.live.u.live.Load().plan(w.call).flight
		return w.turn(), nil
	case errors.Is(err, line.ErrLate), errors.Is(err, line.ErrFull), ctx.Err() != nil && w.now >= until:
		w.place, w.waiting = int32(place.Place), int32(place.Waiting)
		return w.full(), nil
	}
	return step{}, err
}

// boarded takes the units once the call has a slot. If it must wait for the units, it releases the slot.
func (w *walk) boarded() step {
	d := w.hears()
	if d.refused() {
		return d
	}
	if d = w.turn(); d.kind != stepGo {
		w.exit()
	}
	return d
}

// full refuses a call for which there is no slot. RetryAfter is when all waiting calls will have got one, at the
// present rate of responses.
func (w *walk) full() step {
	f := w.flight
	f.refused.Add(1)
	w.why = -1
	wait := f.bound.After(w.now, f.line.Waiting()+1)
	w.undo()
	return no(ConcurrencyLimited, wait)
}

// fail ends the wait of all calls whose breaker is open.
func (f *flight) fail(now time.Duration) {
	f.line.Fail(errOpened, func(a line.Asker) bool { return isOpen(now, a.(*boarder).breaker) })
}

// dissolve ends the wait of all calls for a bound that is no longer in force. They ask the new policy.
func (f *flight) dissolve() { f.line.Fail(errUnbound, func(line.Asker) bool { return true }) }
