package limit

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A Home makes the limiters of limits that several processes share, and gets for calls what these
// limiters lack. fleet.Group is one. It is safe for concurrent use.
type Home interface {
	// Source is what a new registry of the limit gets its limiters from. If empty is set these begin
	// with nothing left, as those of NewEmpty do.
	Source(now time.Duration, l Limit, empty bool) Source

	// Fetch waits until everything that the call lacks has been granted, or there is no hope of it
	// before f.Until. The verdict's Why counts f.Wants. An error is the cause of ctx's end; after an error or
	// a no nothing is held.
	Fetch(ctx context.Context, f *Fetch) (Verdict, error)

	Come() uint64 // the next Fetch.Came
}

// A Source makes the limiters of one registry, each of which wraps a Leased. The registry holds its lock
// while it calls New, Passing and Forget; the other methods are safe for concurrent use.
type Source interface {
	New(key string) *Limiter // for a key that the registry keeps

	// Passing is the limiter of a key for which the registry has no room. It may be another one each time.
	Passing(now time.Duration, key string) *Limiter
	Forget(key string) // that Passing knows, as there is room for it now

	Most() int64                    // the largest cost that can ever be met
	Set(now time.Duration, l Limit) // changes the limit of all keys; l is valid
}

// A Leased is a limiter whose units are kept elsewhere for several processes: this one spends what was
// granted to it. Its methods are safe for concurrent use, and are those of Limiter unless a comment
// says otherwise.
type Leased interface {
	// Take takes n units of what this process holds. A no with no wait says nothing of the limit: it has to be
	// asked for more, by Home.Fetch.
	Take(now time.Duration, n int64) (t Turn, wait time.Duration, ok bool)
	Ask(now time.Duration, n int64) time.Duration // bucket.Never for a cost that can never be met
	Owe(now time.Duration, n int64)
	Back(now time.Duration, t Turn, n int64)
	Pause(now, until time.Duration)
	Resume(now time.Duration)
	Paused(now time.Duration) time.Duration // how long a pause still lasts; 0 if there is none
	Look(now time.Duration) Level
	Retire(now time.Duration) bool // takes it out of use if it holds nothing and nobody waits for it
	Retired() bool
	Kept() bool // by its registry: false for one that Source.Passing has made
	Want(now time.Duration, cost int64) Want
}

// NewLeased makes a limiter of what is kept elsewhere.
func NewLeased(x Leased) *Limiter {
	return shapedAs(&leased{x})
}

// Leased is what stands behind a limiter that NewLeased has made; nil for one of this process alone.
func (m *Limiter) Leased() Leased {
	if x, ok := m.shape().(*leased); ok {
		return x.Leased
	}
	return nil
}

// A leased is the shape of a limiter whose units are kept elsewhere.
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

// The source changes what it has made, and keys keep the limiters that it made for them.
func (x *leased) set(*change) bool                      { return true }
func (x *leased) untouched(time.Duration) bool          { return true }
func (x *leased) close(time.Duration) (*Limiter, int64) { return &Limiter{}, 0 }
func (x *leased) copyTo(t *Limiter)                     { t.bucket.grow().instead = x }
func (x *leased) empty(time.Duration)                   {}

// A Priority says which of the calls that wait in this process goes first. Within one
// they go in the order in which they came.
type Priority int8

const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

// A Fetch is a call that waits for what it lacks of limits that are kept elsewhere.
type Fetch struct {
	Now      time.Duration // when the call comes; Home.Fetch sets it to when it looked last whether what it got may be used
	Until    time.Duration // the instant to which the call waits at most
	Priority Priority
	Wants    []Wanted

	// Stands is the want in whose line the call stands, counted from 1, and 0 if it stands in none. A call that stands in
	// line gets a no as soon as another of its wants is what it has to wait for: others of its line need not wait for that.
	Stands int
	// Holds says that the call holds units of limits of this process while it waits: it gets a no where it would wait for long,
	// so that they are not held for nothing.
	Holds bool

	// Came says in which order calls came: 0 for one that asks for the first time, for which Home.Fetch sets it. A call that asks
	// again has its place by it.
	Came uint64

	Late time.Duration // how much later than its grant the call woke, at worst; Home.Fetch sets it

	charges []int // which charge of the permit each want is
}

// A Wanted is what a call lacks of one limit and key.
type Wanted struct {
	Leased Leased
	Cost   int64
	Turn   Turn // if the verdict is yes, what Home.Fetch got
}

// fetches are used again, so that waiting allocates nothing.
var fetches = sync.Pool{New: func() any { return new(Fetch) }}

// Fetch gets what Take found missing from where the limits are kept, waiting in order with the others of
// this process that wait for the same, until the instant at most. If the verdict is yes the shared
// charges are held, and Take has to be called once more: the others may have passed. An error is the
// cause of ctx's end; then nothing is held.
func (p *Charges) Fetch(ctx context.Context, now, until time.Duration, prio Priority) (Verdict, error) {
	v, _, err := p.FetchInLine(ctx, now, until, prio, -1)
	return v, err
}

// FetchInLine is Fetch for a call that stands in the line of a charge, -1 for none: it does not wait for another
// charge than that, but gets a no that says which and how long. at is the instant by which what it was granted may still be
// used: a call that goes goes then, and need not look at a clock again.
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
		v.Why = f.charges[min(v.Why, len(f.charges)-1)]
		p.Drop(f.Now)
		return v, f.Now, err
	}
	for k, i := range f.charges {
		e := p.at(i)
		e.turn, e.held = f.Wants[k].Turn, true
	}
	return v, f.Now, nil
}

// Comes gives the call its place among those that ask for what is kept elsewhere, before it does.
func (p *Charges) Comes() {
	for i := range p.n {
		if h := p.at(i).Registry.home; h != nil && p.came == 0 {
			p.came = h.Come()
		}
	}
}

// wants notes what the call lacks of limits that are kept elsewhere, and returns where; nil if it lacks nothing.
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

// Lacks is what a charge of the permit lacks beside what is said of its limit.
func (p *Charges) Lacks(now time.Duration, i int) Want {
	e := p.at(i)
	if e.Registry.home == nil || e.Cost == 0 {
		return Want{}
	}
	e.find(now)
	return e.limiter.Leased().Want(now, e.Cost)
}
