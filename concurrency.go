package weir

import (
	"cmp"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/outcome"
)

// A Concurrency bounds how many attempts are in flight: sent, and not answered. It
// keeps an upstream that stands still from being given work whose callers will have
// left when it is done. An answer that comes as a stream counts until it begins.
//
// A caller who leaves frees no slot, as the upstream still has the work: the answer to
// the attempt does, or to one that was sent later, and half a minute at the latest.
// A call that finds no slot waits for one, but not for long. Calls that wait go by priority, as those do that wait for a
// limit: see PriorityWeights. See docs/explanation/recovery.md.
type Concurrency struct {
	Auto  bool // the bound is learnt from answers
	Limit int  // or it is this number; 0 and not Auto means none

	Min, Max int // of what is learnt; 0 means 1 and no other than 100,000
}

// MostInFlight is the largest bound.
const MostInFlight = inflight.Most

// on reports whether there is a bound at all. The zero Concurrency has none.
func (c Concurrency) on() bool { return c.Auto || c.Limit > 0 }

// config is the part of it that the bound wants to know.
func (c Concurrency) config() inflight.Config {
	return inflight.Config{Limit: c.Limit, Min: c.Min, Max: c.Max}
}

// validate reports all that is wrong with it.
func (c Concurrency) validate() error {
	err := c.config().Validate()
	switch {
	case c.Auto && c.Limit > 0:
		err = errors.Join(err, errors.New("limit: want either auto or a number"))
	case !c.on() && c != (Concurrency{}):
		err = errors.Join(err, errors.New("limit: is missing: write auto, or a number"))
	}
	return err
}

// longestSlotWait is how long a call may wait for a slot if the policy does not say how long
// calls may wait: as long as clients leave a call hanging at an upstream that stands still.
// The bound ends most waits after a second; see inflight.Bound.Longer.
const longestSlotWait = time.Minute

// slotWait is how long a call may wait for a slot by a policy whose defaults are not filled in; 0 if
// it must not wait.
func (p *Policy) slotWait() time.Duration {
	if p.MaxWait == 0 {
		return longestSlotWait
	}
	return max(0, p.MaxWait)
}

// A flight is what is in flight, and the calls that wait for a slot. A policy that is put in force
// goes on with it, so that attempts of before still count.
type flight struct {
	operation string // "" if it is that of all together
	fixed     bool
	bound     *inflight.Bound
	line      *line.Line
	refused   atomic.Uint64
	lost      lost
}

// newBound makes a bound, or goes on with the one of before, nil if there was none: what is in
// flight stays counted, and what was learnt is not learnt anew. A bound that was learnt and one
// that is a number have nothing to hand on to each other.
func (v *live) newBound(name string, c Concurrency, old *flight) *flight {
	now := v.u.clock.Now()
	if old != nil && old.fixed == (c.Limit > 0) {
		old.bound.Set(now, c.config())
		old.line.SetWeights(v.policy.Fair.config().Weights)
		return old
	}
	b := inflight.New(c.config())
	return &flight{operation: name, fixed: c.Limit > 0, bound: b, line: line.New(v.u.clock, b, v.policy.Fair.config().Weights)}
}

// newFlight makes the bound of all operations together, if it is a number. A bound that
// is learnt has each operation for itself: they take different times.
func (v *live) newFlight(old *live) {
	if c := v.policy.Concurrency; c.Limit > 0 {
		v.flight = v.newBound("", c, old.flight)
	}
}

// flightOf is what is in flight for an operation.
func (v *live) flightOf(o *Operation, old *live) *flight {
	c := v.policy.Concurrency
	if o.Concurrency != nil {
		c = *o.Concurrency
	} else if v.flight != nil {
		return v.flight
	}
	if !c.on() {
		return nil
	}
	var before *flight
	if p := old.plans[o.Name]; p != nil && p.flight != old.flight {
		before = p.flight
	}
	return v.newBound(o.Name, c, before)
}

// flights are all bounds, by name.
func (v *live) flights() (all []*flight) {
	for _, p := range v.plans {
		if p.flight != nil && !slices.Contains(all, p.flight) {
			all = append(all, p.flight)
		}
	}
	slices.SortFunc(all, func(a, b *flight) int { return cmp.Compare(a.operation, b.operation) })
	return all
}

// A FlightView is what a bound of what is in flight looks like.
type FlightView struct {
	Operation string // "" if it is the bound of all together
	Fixed     bool   // it is not learnt
	InFlight  int    // slots taken
	Held      int    // of these, by attempts whose callers have left
	Bound     int
	Waiting   int           // calls that wait for a slot
	Base      time.Duration // what an answer takes without a queue; 0 if it is not known yet
	Rate      float64       // answers in a second
	Calm      bool          // all is as usual
	Draining  bool          // less is let in, to find out what an answer takes without a queue

	Refused, Drains, Probes uint64 // so far
	Lost                    uint64 // permits that were dropped without a report, as the garbage collector has found
}

// look shows the bound, once it has given up the slots of permits that were dropped.
func (f *flight) look(now time.Duration) FlightView {
	lost := f.recover(now)
	b := f.bound.Look(now)
	return FlightView{
		Lost:      lost,
		Operation: f.operation, Fixed: f.fixed, InFlight: b.InFlight, Held: b.Held, Bound: b.Bound, Waiting: f.line.Waiting(),
		Base: b.Base, Rate: b.Rate, Calm: b.Calm, Draining: b.Draining, Refused: f.refused.Load(), Drains: b.Drains, Probes: b.Probes,
	}
}

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
