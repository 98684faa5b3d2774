package limit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A Home makes the limiters of limits that several processes share, and gets the units that calls lack. fleet.Group
// implements it. It must be safe for concurrent use.
type Home interface {
	// Source returns the maker of limiters for a new registry of the limit. If empty is set, its limiters start
	// without units, like those of NewEmpty.
	Source(now time.Duration, l Limit, empty bool) Source

	// Fetch waits until everything that the call lacks is granted, or cannot be granted before f.Until. The verdict's
	// Why is an index of f.Wants. The error is the cause of ctx's end. After an error or a refusal the call holds
	// nothing.
	Fetch(ctx context.Context, f *Fetch) (Verdict, error)

	Come() uint64 // returns the next Fetch.Came
}

// A Source makes the limiters of one registry. Each wraps a Leased. The registry calls New, Passing and Forget with
// its lock held. The other methods must be safe for concurrent use.
type Source interface {
	New(key string) *Limiter // for a key that the registry keeps

	// Passing returns the limiter of a key for which the registry has no room. It may return another one each time.
	Passing(now time.Duration, key string) *Limiter
	Forget(key string) // forgets a key of Passing for which the registry has room now

	Most() int64                    // the largest cost that can ever be met
	Burst() int64                   // the largest cost that is met as soon as the limit is full
	Set(now time.Duration, l Limit) // changes the limit of all keys; l is valid
}

// A Leased is a limiter whose units are kept in a store for several processes. This process spends the units that
// were granted to it. Its methods must be safe for concurrent use. They do what the methods of Limiter do unless a
// comment differs.
type Leased interface {
	// Take takes n of the units that this process holds. If it returns false without a wait, the store must be asked
	// for more, by Home.Fetch.
	Take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool)
	Ask(now time.Duration, n int64) time.Duration // bucket.Never for a cost that can never be met
	Owe(now time.Duration, n int64)
	Back(now time.Duration, t Turn, n int64)
	Pause(now, until time.Duration)
	Resume(now time.Duration)
	Paused(now time.Duration) time.Duration // remaining time of a pause; 0 if there is none
	Look(now time.Duration) Level
	Retire(now time.Duration) bool // takes it out of use if it holds nothing and no call waits for it
	Retired() bool
	Kept() bool // whether its registry keeps it: false for a limiter of Source.Passing
	Want(now time.Duration, cost int64) Want

	Held(now time.Duration) int64             // of a budget: units of all processes that are granted and not spent
	Spent(now time.Duration, t Turn, n int64) // of a budget: a call has spent n units of its turn, and the others return
}

// NewLeased returns a limiter for a Leased.
func NewLeased(x Leased) *Limiter {
	return shapedAs(&leased{x})
}

// Leased returns the Leased of a limiter that NewLeased has made; nil for a local one.
func (m *Limiter) Leased() Leased {
	if x, ok := m.counter().(*leased); ok {
		return x.Leased
	}
	return nil
}

// A leased is the shape of a limiter whose units are kept in a store.
type leased struct{ Leased }

func (x *leased) take(now time.Duration, n int64) (Turn, time.Duration, bool) { return x.Take(now, n) }

func (x *leased) ask(now time.Duration, n int64) time.Duration { return x.Ask(now, n) }
func (x *leased) owe(now time.Duration, n int64)               { x.Owe(now, n) }
func (x *leased) back(now time.Duration, t Turn, n int64)      { x.Back(now, t, n) }
func (x *leased) pause(now, until time.Duration)               { x.Pause(now, until) }
func (x *leased) lift(now time.Duration)                       { x.Resume(now) }
func (x *leased) pausedFor(now time.Duration) time.Duration    { return x.Paused(now) }
func (x *leased) look(now time.Duration) Level                 { return x.Look(now) }
func (x *leased) retire(now time.Duration) bool                { return x.Retire(now) }
func (x *leased) retired() bool                                { return x.Retired() }

// The source changes the limiters that it has made, and keys keep them.
func (x *leased) set(*change) bool                      { return true }
func (x *leased) untouched(time.Duration) bool          { return true }
func (x *leased) close(time.Duration) (*Limiter, int64) { return &Limiter{}, 0 }
func (x *leased) copyTo(t *Limiter)                     { t.bucket.grow().instead = x }
func (x *leased) empty(time.Duration)                   {}

// A Priority orders the calls that wait in this process. Calls of the same priority go in order of arrival.
type Priority int8

const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// A Fetch is a call that waits for units of shared limits.
type Fetch struct {
	Now      time.Duration // when the call arrives; Home.Fetch sets it to the instant by which the granted units may still be used
	Until    time.Duration // the latest instant until which the call waits
	Priority Priority
	Wants    []Wanted

	// Stands is the index, counted from 1, of the want in whose queue the call waits; 0 if in none. Such a call is
	// refused as soon as it has to wait for another of its wants, so that it does not delay the calls behind it.
	Stands int
	// Holds reports that the call holds units of local limits while it waits. It is refused instead of waiting long,
	// so that these units are not wasted.
	Holds bool

	// Came is the call's rank in the order of arrival. Home.Fetch sets it on the first Fetch, where it is 0. A call
	// that asks again keeps its rank.
	Came uint64

	Late time.Duration // how much later than its grant the call woke, at most; Home.Fetch sets it

	charges []int // index of each want's charge
}

// A Wanted is the shortage of a call for one limit and key.
type Wanted struct {
	Leased Leased
	Cost   int64
	Turn   Turn // the turn that Home.Fetch got, if it succeeded
}

// fetches has unused values, so that waiting does not allocate.
var fetches = sync.Pool{New: func() any { return new(Fetch) }}

// Fetch gets from the store what Take found missing. It waits in order with the other calls of this process, at most
// until the instant. If the verdict is OK, the shared charges are held, and the caller must call Take again, because
// other charges may have become unavailable. The error is the cause of ctx's end; the call then holds nothing.
func (p *Charges) Fetch(ctx context.Context, now, until time.Duration, prio Priority) (Verdict, error) {
	v, _, err := p.FetchInLine(ctx, now, until, prio, -1)
	return v, err
}

// FetchInLine is Fetch for a call that waits in the queue of a charge, -1 for none. It does not wait for another
// charge, but returns which one and how long that takes. at is the instant by which the granted units may still be
// used: a call that proceeds does so at that instant and need not read a clock.
func (p *Charges) FetchInLine(ctx context.Context, now, until time.Duration, prio Priority, line int) (v Verdict, at time.Duration, err error) {
	f := fetches.Get().(*Fetch)
	defer f.release()
	home := p.wants(now, f)
	if home == nil {
		return Verdict{OK: true}, now, nil
	}
	f.Now, f.Until, f.Priority, f.Late, f.Stands, f.Holds, f.Came = now, until, prio, 0, 0, false, p.came
	if line >= 0 {
		f.Holds = p.holdsLocal()
		f.Stands = cmp.Or(slices.Index(f.charges, line)+1, len(f.charges)+1)
	}
	v, err = home.Fetch(ctx, f)
	p.late, p.came = max(p.late, f.Late), f.Came
	if err != nil || !v.OK {
		f.waitForHeld(&v, p)
		v.Why = f.charges[min(v.Why, len(f.charges)-1)]
		p.Drop(f.Now)
		return v, f.Now, err
	}
	for k, i := range f.charges {
		e := p.at(i)
		e.turn, e.held = f.Wants[k].Turn, true
		if b, ok := e.limiter.shape().(*budget); ok {
			b.holds(e.turn)
		}
	}
	return v, f.Now, nil
}

// waitForHeld shortens the wait of a refusal by a budget if calls in flight hold enough of it.
func (f *Fetch) waitForHeld(v *Verdict, p *Charges) {
	if v.OK || v.Lack != LacksNothing || v.Wait <= heldWait || v.Why >= len(f.charges) {
		return
	}
	if e := p.at(f.charges[v.Why]); e.Registry.budget {
		if b, ok := e.limiter.shape().(*budget); ok {
			v.Wait = b.ofStore(f.Now, e.Cost, v.Wait)
		}
	}
}

// Comes gives the call its rank in the order of arrival before it asks the store.
func (p *Charges) Comes() {
	for i := range p.n {
		if h := p.at(i).Registry.home; h != nil && p.came == 0 {
			p.came = h.Come()
		}
	}
}

// wants collects the call's shortages of shared limits, and returns their home; nil if there are none.
func (p *Charges) wants(now time.Duration, f *Fetch) (home Home) {
	for i := range p.n {
		e := p.at(i)
		if e.Registry.home == nil || e.held || e.Cost == 0 {
			continue
		}
		e.find(now)
		f.Wants = append(f.Wants, Wanted{Leased: e.limiter.Leased(), Cost: e.Cost})
		f.charges = append(f.charges, i)
		if home == nil {
			home = e.Registry.home
		}
	}
	return home
}

func (f *Fetch) release() {
	clear(f.Wants)
	f.Wants, f.charges = f.Wants[:0], f.charges[:0]
	fetches.Put(f)
}

// Lacks returns the shortage of a charge that is due to the state of the store.
func (p *Charges) Lacks(now time.Duration, i int) Want {
	e := p.at(i)
	if e.Registry.home == nil || e.Cost == 0 {
		return Want{}
	}
	e.find(now)
	return e.limiter.Leased().Want(now, e.Cost)
}
