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

// A Concurrency bounds how many attempts are in flight, which means sent and not answered. During a stall of the
// upstream, it prevents weir from sending work that would be done only after its callers have left. A streamed
// response counts
// until it begins.
//
// A caller that leaves frees no slot, because the upstream still has the work. The slot is freed by the response to
// that attempt, by the response to an attempt that was sent later, or after half a minute. A call that finds no slot
// waits briefly. Waiting calls are ordered by priority as for a limit, and authenticated callers of a priority take
// turns: see PriorityWeights and docs/explanation/recovery.md.
type Concurrency struct {
	Auto  bool // learn the bound from responses
	Limit int  // a fixed bound; 0 without Auto means none

	Min, Max int // range of the learned bound; 0 means 1 and 100,000
}

// MostInFlight is the largest bound on attempts in flight.
const MostInFlight = inflight.Most

// on reports whether there is a bound. The zero Concurrency has none.
func (c Concurrency) on() bool { return c.Auto || c.Limit > 0 }

// config returns the configuration of the bound.
func (c Concurrency) config() inflight.Config {
	return inflight.Config{Limit: c.Limit, Min: c.Min, Max: c.Max}
}

// validate returns everything that is wrong with it.
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

// longestSlotWait is how long a call may wait for a slot if the policy sets no wait. Clients leave a call hanging
// about that long during a stall. The bound ends most waits after a second; see inflight.Bound.Longer.
const longestSlotWait = time.Minute

// slotWait returns how long a call may wait for a slot; 0 means that it must not wait. The policy's defaults must not
// be filled in yet.
func (p *Policy) slotWait() time.Duration {
	if p.MaxWait == 0 {
		return longestSlotWait
	}
	return max(0, p.MaxWait)
}

// A flight is a concurrency bound with its attempts in flight and its queue. A new policy takes it over, so that
// earlier attempts still count.
type flight struct {
	operation string // "" if it is the bound of all operations together
	fixed     bool
	bound     *inflight.Bound
	line      *line.Line
	refused   atomic.Uint64
	lost      lost
}

// newBound makes a bound, or takes over the old one, if it is not nil, with its attempts in flight and its learned
// value. A learned bound and a fixed one cannot replace each other.
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

// newFlight makes the bound of all operations together, if it is fixed. Learned bounds are per operation, because
// operations take different times.
func (v *live) newFlight(old *live) {
	if c := v.policy.Concurrency; c.Limit > 0 {
		v.flight = v.newBound("", c, old.flight)
	}
}

// flightOf returns the bound of an operation.
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

// flights returns all bounds, sorted by name.
func (v *live) flights() (all []*flight) {
	for _, p := range v.plans {
		if p.flight != nil && !slices.Contains(all, p.flight) {
			all = append(all, p.flight)
		}
	}
	slices.SortFunc(all, func(a, b *flight) int { return cmp.Compare(a.operation, b.operation) })
	return all
}

// A FlightView is the state of a concurrency bound.
type FlightView struct {
	Operation string // "" if it is the bound of all operations together
	Fixed     bool   // not learned
	InFlight  int    // slots taken
	Held      int    // of these, slots of attempts whose callers have left
	Bound     int
	Waiting   int           // calls that wait for a slot
	Base      time.Duration // response time without a queue at the upstream; 0 if not known yet
	Rate      float64       // responses per second
	Calm      bool          // nothing is unusual
	Draining  bool          // admits less, to measure the response time without a queue

	Refused, Drains, Probes uint64 // totals
	Lost                    uint64 // permits dropped without a report, as found by the garbage collector
}

// look returns the state of the bound, after giving up the slots of dropped permits.
func (f *flight) look(now time.Duration) FlightView {
	lost := f.recover(now)
	b := f.bound.Look(now)
	return FlightView{
		Lost:      lost,
		Operation: f.operation, Fixed: f.fixed, InFlight: b.InFlight, Held: b.Held, Bound: b.Bound, Waiting: f.line.Waiting(),
		Base: b.Base, Rate: b.Rate, Calm: b.Calm, Draining: b.Draining, Refused: f.refused.Load(), Drains: b.Drains, Probes: b.Probes,
	}
}

// A berth is the slot of an attempt. The zero berth is for attempts without a bound.
type berth struct {
	flight  *flight
	slot    inflight.Slot   // 0 if none
	leashed runtime.Cleanup // finds the slot of a dropped permit; see leash
	drop    func()          // ends an attempt that continues without its caller
	heard   bool            // the upstream answered, even if the error looks like a timeout
	broken  bool            // the caller's own body stopped the attempt
}

// enter takes a slot for the attempt, if one is free and no call waits for it. A breaker's probe does not need a free
// slot: waiting for one would keep the breaker open.
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

// exit returns the slot of an attempt that is not made. The bound learns nothing from it. Without a slot exit does
// nothing.
func (b *berth) exit() {
	if b.slot != 0 {
		b.flight.bound.Undo(b.slot)
		b.slot = 0
		b.flight.line.Kick()
	}
}

// lands returns the slot of an attempt that was answered. It keeps the slot of an attempt whose caller left before
// the response.
func (b *berth) lands(now, sent time.Duration, o *outcome.Outcome) {
	f := b.flight
	b.leashed.Stop()
	switch {
	case o.Unsent, o.Own, b.broken: // an outcome that counts only for its caller, or a partial body, teaches the bound nothing
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

// answer returns what the bound learns from a response.
func (f *flight) answer(now, sent time.Duration, c outcome.Class) inflight.Answer {
	failed := c == outcome.Failed || c == outcome.Throttled || c == outcome.Unknown
	return inflight.Answer{Sent: sent, Failed: failed, Waited: f.line.Waited(now)}
}

// unheard reports whether an attempt ended without a response, because its caller left or its time was up.
func unheard(o *outcome.Outcome) bool {
	return o.Class == outcome.Canceled || o.Code == "timeout" || o.Code == "DEADLINE_EXCEEDED"
}

// A lost holds the slots of permits that were dropped without a report. The garbage collector finds them on its own
// goroutine and adds them. The bound gives them up when a call finds no slot, or when its state is read.
type lost struct {
	mu    sync.Mutex // no other lock is taken while it is held
	total uint64
	slots []inflight.Slot
}

// add adds a slot. It runs on the garbage collector's goroutine, which must not wait long.
func (l *lost) add(s inflight.Slot) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.total++
	l.slots = append(l.slots, s)
}

// take returns the slots added since the last take, and the total number.
func (l *lost) take() (slots []inflight.Slot, total uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	slots, l.slots = l.slots, nil
	return slots, l.total
}

// recover gives up the lost slots as if their callers had left, because the upstream may still have the work. It
// returns the total number of lost slots.
func (f *flight) recover(now time.Duration) (total uint64) {
	slots, total := f.lost.take()
	for _, s := range slots {
		f.bound.Left(now, s, nil)
	}
	return total
}

// A stray identifies the slot of a dropped permit.
type stray struct {
	lost *lost
	slot inflight.Slot
}

// leash lets the garbage collector find the slot if the permit, which must be on the heap, is dropped.
func (b *berth) leash() {
	if b.slot != 0 {
		b.leashed = runtime.AddCleanup(b, func(s stray) { s.lost.add(s.slot) }, stray{&b.flight.lost, b.slot})
	}
}
