package weir

import (
	"cmp"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit/inflight"
	"github.com/seed1158cd35/weir/limit/line"
)

// A Concurrency bounds how many attempts are in flight: sent, and not answered. It
// keeps an upstream that stands still from being given work whose callers will have
// left when it is done. An answer that comes as a stream counts until it begins.
//
// A caller who leaves frees no slot, as the upstream still has the work: the answer to
// the attempt does, or to one that was sent later, and half a minute at the latest.
// Who finds no slot waits for one, but not for long. See docs/recovery.md.
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
		err = errors.Join(err, errors.New("limit: a bound is learnt or a number, not both"))
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
		return old
	}
	b := inflight.New(c.config())
	return &flight{operation: name, fixed: c.Limit > 0, bound: b, line: line.New(v.u.clock, b)}
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
