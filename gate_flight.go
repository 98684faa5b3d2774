package weir

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/limit/line"
)

// Why a wait for a slot ends without one, besides the line's own reasons.
var (
	// errOpened ends the wait of calls whose breaker has opened, or that are not to wait any more.
	errOpened = errors.New("the breaker has opened")

	// errUnbound ends the wait for a slot of a bound that a new policy does not have.
	errUnbound = errors.New("the bound is gone")
)

// A boarder is a call that waits for a slot, in the order of priorities that calls waiting for a limit have. It does not
// hold its permit: that would move to the heap, that of calls that never wait too.
type boarder struct {
	call    line.Call
	bound   *inflight.Bound
	breaker *breaker.Breaker
	slot    inflight.Slot
}

// Ask is the line's: it is on another goroutine's stack at times.
func (b *boarder) Ask(now, _ time.Duration) line.Step {
	var ok bool
	if b.slot, ok = b.bound.Take(now); ok {
		return line.Step{Kind: line.Go}
	}
	return line.Step{Kind: line.Wait, For: b.bound.Next(now) - now}
}

// board waits for a slot, and then asks the limits again: what they had given went back, as
// others can use it meanwhile. Their time begins anew.
func (w *walk) board(ctx context.Context) (step, error) {
	f, until := w.flight, min(w.deadline, later(w.start, w.within(w.plan.live.slotWait)))
	w.handBack(w.now)
	b := &boarder{bound: f.bound, breaker: w.breaker}
	b.call = line.Call{Asker: b, Until: until, Priority: w.by.linePriority(w.call)}
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

// boarded takes the limits once there is a slot. Where they make the call wait, somebody
// else has the slot meanwhile.
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

// full refuses a call for which there is no slot. It may come again when all who wait have gone, at
// the rate at which answers come now.
func (w *walk) full() step {
	f := w.flight
	f.refused.Add(1)
	w.why = -1
	wait := f.bound.After(w.now, f.line.Waiting()+1)
	w.undo()
	return no(ConcurrencyLimited, wait)
}

// fail ends the wait of all whose breaker is open.
func (f *flight) fail(now time.Duration) {
	f.line.Fail(errOpened, func(a line.Asker) bool { return isOpen(now, a.(*boarder).breaker) })
}

// dissolve lets those wait elsewhere, or not at all, who wait for a slot of this bound.
func (f *flight) dissolve() { f.line.Fail(errUnbound, func(line.Asker) bool { return true }) }
