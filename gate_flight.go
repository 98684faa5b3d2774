package weir

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/outcome"
)

// Why a wait for a slot ends without one, besides the line's own reasons.
var (
	// errOpened ends the wait of calls whose breaker has opened, or that are not to wait any more.
	errOpened = errors.New("the breaker has opened")

	// errUnbound ends the wait for a slot of a bound that a new policy does not have.
	errUnbound = errors.New("the bound is gone")
)

// A berth is the place of an attempt among what is in flight. The zero berth is where that has no bound.
type berth struct {
	flight  *flight
	slot    inflight.Slot   // 0 if it has none
	leashed runtime.Cleanup // finds the slot of a permit that is dropped; see leash
	drop    func()          // ends an attempt that goes on without its caller
	heard   bool            // it was answered, whatever the upstream calls its error
	broken  bool            // its caller's own body kept it from its end
}

// enter takes a slot for the attempt, if there is one and nobody waits for it. The probe
// of a breaker needs none: waiting for one it would keep the breaker from closing.
func (b *berth) enter(now time.Duration, probe bool) bool {
	f := b.flight
	if f == nil || b.slot != 0 {
		return true
	}
	ok := true
	if probe {
		b.slot = f.bound.Force(now)
	} else if ok = f.line.Empty(); ok {
		b.slot, ok = f.bound.Take(now)
	}
	if !ok {
		f.recover(now)
	}
	return ok
}

// exit gives back a slot whose attempt is not made: the bound learns nothing of it. Without a slot it
// does nothing.
func (b *berth) exit() {
	if b.slot != 0 {
		b.flight.bound.Undo(b.slot)
		b.slot = 0
		b.flight.line.Kick()
	}
}

// A boarder is a call that waits for a slot. It does not hold its permit: that would
// move to the heap, that of calls that never wait too.
type boarder struct {
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
	f, until := w.flight, min(w.deadline, later(w.start, w.plan.live.slotWait))
	w.handBack(w.now)
	b := &boarder{bound: f.bound, breaker: w.breaker}
	place, err := f.line.Wait(ctx, w.now, until, b)
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

// lands gives the slot of an attempt back that was answered, and keeps that of one
// whose answer nobody waited for.
func (b *berth) lands(now, sent time.Duration, o *outcome.Outcome) {
	f := b.flight
	b.leashed.Stop()
	switch {
	case o.Unsent, o.Own, b.broken: // who is believed for its own calls alone teaches the bound nothing; of a part of a body nothing is made
		f.bound.Undo(b.slot)
	case !b.heard && unheard(o):
		f.bound.Left(now, b.slot, b.drop)
		b.slot, b.drop = 0, nil
		return
	default:
		f.bound.Answered(now, b.slot, f.answer(now, sent, o.Class))
	}
	b.slot = 0
	f.line.Kick()
}

// answer is what the bound learns from.
func (f *flight) answer(now, sent time.Duration, c outcome.Class) inflight.Answer {
	failed := c == outcome.Failed || c == outcome.Throttled || c == outcome.Unknown
	return inflight.Answer{Sent: sent, Failed: failed, Waited: f.line.Waited(now)}
}

// unheard reports whether an attempt ended before it was answered: its caller left, or
// its time was up.
func unheard(o *outcome.Outcome) bool {
	return o.Class == outcome.Canceled || o.Code == "timeout" || o.Code == "DEADLINE_EXCEEDED"
}

// fail ends the wait of all whose breaker is open.
func (f *flight) fail(now time.Duration) {
	f.line.Fail(errOpened, func(a line.Asker) bool { return isOpen(now, a.(*boarder).breaker) })
}

// dissolve lets those wait elsewhere, or not at all, who wait for a slot of this bound.
func (f *flight) dissolve() { f.line.Fail(errUnbound, func(line.Asker) bool { return true }) }

// Answered says that the answer to the attempt has begun. What is still to come is a
// stream, and no longer counts as in flight; the report is still to come, too. Where an
// attempt is reported when its answer begins, there is no need of it.
func (p *Permit) Answered() {
	if p.u != nil && p.slot != 0 {
		p.lands(p.u.clock.Now(), p.sent, &outcome.Outcome{Class: outcome.OK})
	}
}

// lost are the slots of permits that were dropped without a report. The garbage collector
// finds them, on a goroutine of its own: they are noted then, and given up by the next who
// asks for a slot and finds none, or looks.
type lost struct {
	mu    sync.Mutex // nothing else is locked while it is held
	total uint64
	slots []inflight.Slot
}

// add notes a slot. It is called by the garbage collector's goroutine, which must not wait long.
func (l *lost) add(s inflight.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.slots = append(l.slots, s)
}

// take are the slots noted since it was last called, and how many there were in all.
func (l *lost) take() (slots []inflight.Slot, total uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots, l.slots = l.slots, nil
	return slots, l.total
}

// recover gives up what was lost, as if the callers had left: the upstream may still have
// the work. It returns how many were lost so far.
func (f *flight) recover(now time.Duration) (total uint64) {
	slots, total := f.lost.take()
	for _, s := range slots {
		f.bound.Left(now, s, nil)
	}
	return total
}

// A stray is what is noted of a permit that nobody can report any more.
type stray struct {
	lost *lost
	slot inflight.Slot
}

// leash lets the slot of a permit on the heap be found should it be dropped.
func (b *berth) leash() {
	if b.slot != 0 {
		b.leashed = runtime.AddCleanup(b, func(s stray) { s.lost.add(s.slot) }, stray{&b.flight.lost, b.slot})
	}
}
