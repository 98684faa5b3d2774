package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Charge is one limit, one key, one cost. The zero Charge has no limit, and is none.
type Charge struct {
	Registry *Registry
	Key      string
	Cost     int64 // in the limit's unit; 0 takes nothing
}

// Charges are what one call takes, all of it or none. Add them, then call Take. They are
// for one goroutine; the zero Charges are none, and granted at once.
//
// A call that has to wait holds nothing, so that no limit stands still for a call
// that waits for another. Only while Fetch asks for what is shared are the other
// charges held; Take takes them anew when it has come.
type Charges struct {
	n      int
	first  [2]entry // most calls have no more
	rest   *rest
	lent   uint32 // of the rest, when this call got it
	shares bool   // two of them are of one limit: keys may share its limiter

	late time.Duration // how late it came for a turn, at worst
	came uint64        // Fetch.Came of the latest Fetch; 0 before the first
}

// An entry is a charge and what is held of it.
type entry struct {
	Charge
	limiter *Limiter
	turn    Turn
	held    bool
	sent    bool // counted in the limiter's advertised
}

// Add adds a charge. Charges to the same limit and key are one: apart, each could
// be met and the two of them never.
func (p *Charges) Add(c Charge) {
	for i := range p.n {
		if e := p.at(i); e.Registry == c.Registry {
			if e.Key == c.Key {
				e.Cost += c.Cost
				return
			}
			p.shares = true
		}
	}
	p.AddAnother(c)
}

// AddAnother is Add of a charge to a limit to which none of the others is. Who knows that saves
// a look at all of them.
func (p *Charges) AddAnother(c Charge) {
	e := p.another()
	e.Charge, e.limiter, e.held, e.sent = c, nil, false, false
}

// Reset forgets the charges of a permit that holds nothing, for another call.
func (p *Charges) Reset() { p.n, p.shares, p.late, p.came = 0, false, 0, 0 }

// Late is how much later than its turn the call woke; for several turns the most.
func (p *Charges) Late() time.Duration { return p.late }

// Len is how many charges there are, and Charge one of them.
func (p *Charges) Len() int            { return p.n }
func (p *Charges) Charge(i int) Charge { return p.at(i).Charge }

// Turn is what a charge holds, if it holds anything.
func (p *Charges) Turn(i int) Turn { return p.at(i).turn }

// Holds reports whether a charge is taken. Between two calls of Take that is so only for what
// Fetch got, and for what the others hold while Fetch asks.
func (p *Charges) Holds(i int) bool { return p.at(i).held }

// at is the charge with an index, in the order of Add.
func (p *Charges) at(i int) *entry {
	if i < len(p.first) {
		return &p.first[i]
	}
	return &p.rest.entries[i-len(p.first)]
}

// Fit makes charges smaller that are more than their limit holds now, and reports whether
// there were any. It is for a permit that holds nothing and whose costs are guesses:
// a limit may be told that it holds less while a call waits.
func (p *Charges) Fit(now time.Duration) (fitted bool) {
	for i := range p.n {
		e := p.at(i)
		if most := e.Registry.Most(now, e.Key); e.Cost > most && most > 0 && !e.held {
			e.Cost, fitted = most, true
		}
	}
	return fitted
}

// A Verdict is what Take says. It has four fields at most: the compiler keeps a struct of more
// in memory, and a decision then takes half as long again.
type Verdict struct {
	OK   bool          // go now: everything is held
	Ask  bool          // nothing said no here, but the store has to be asked: call Fetch
	Wait time.Duration // if not OK, how long it takes at least until it is there; bucket.Never if the cost can never be met
	Cause
}

// A Cause is which charge makes a call wait or said no, and what was lacking.
type Cause struct {
	Why  int  // the charge
	Lack Lack // if not OK: what this process lacks that has to go on without the store
}

// Take takes the charges now, or says how long it takes until they are there. Then nothing is
// held, unless the store has to be asked.
func (p *Charges) Take(now time.Duration) Verdict {
	if p.n == 1 && !p.first[0].held {
		return p.first[0].take(now)
	}
	return p.takeAll(now, head{})
}

// A head is the charge in whose line a call is first, and since when it has been entitled to go.
type head struct {
	at    int
	since time.Duration
}

// TakeSince is Take for a call that is the first of those who wait for one of its charges, and has been entitled to go since an instant: what has come of that limit since then, and within
// mostLate, counts even if its burst is smaller, so that it does not stand still while nobody got round to
// asking.
func (p *Charges) TakeSince(now, since time.Duration, at int) Verdict {
	if since >= now {
		return p.Take(now)
	}
	v := p.takeAll(now, head{at, max(since, now-mostLate)})
	if v.OK {
		p.late = max(p.late, now-since)
	}
	return v
}

// take is takeAll for a call that has one charge, which is nearly every call.
func (e *entry) take(now time.Duration) Verdict {
	for {
		e.find(now)
		t, wait, ok := e.limiter.Take(now, e.Cost)
		if !ok && e.limiter.shape().retired() {
			continue
		}
		if ok {
			e.turn, e.held = t, true
		} else if e.Registry.home != nil {
			return e.unmet(now)
		}
		return Verdict{OK: ok, Wait: wait}
	}
}

// unmet is what becomes of a charge of a shared limit that this process holds not
// enough for.
func (e *entry) unmet(now time.Duration) Verdict {
	wait := e.limiter.Ask(now, e.Cost)
	return Verdict{Wait: wait, Ask: wait == 0}
}

// takeAll asks all limits before it takes of any, so that a no changes none of them, and puts back
// what it took if one says no after all. It ends: it goes round again only when another call took
// something meanwhile.
func (p *Charges) takeAll(now time.Duration, first head) Verdict {
	p.dropLocal(now)
	for {
		why, wait := p.latest(now, first.at)
		if wait > 0 {
			p.Drop(now) // what the store has granted does not keep so long
			return Verdict{Wait: wait, Cause: Cause{Why: why}}
		}
		switch got, ask := p.takeRest(now, first); {
		case got:
			return Verdict{OK: true}
		case ask >= 0:
			return Verdict{Ask: true, Cause: Cause{Why: ask}}
		} // else somebody was faster; look again
	}
}

// Asks reports whether the store is to be asked after a no, with Fetch, by a call that waits so long:
// it may give more than this process knows of.
func (p *Charges) Asks(v Verdict, patience time.Duration) bool {
	return v.Ask || !v.OK && v.Wait <= patience && p.Charge(v.Why).Registry.Shared()
}

// Ask is how long the call would have to wait, and for which charge: the given one if no other
// takes longer. It takes nothing.
func (p *Charges) Ask(now time.Duration, at int) Verdict {
	why, wait := p.latest(now, at)
	return Verdict{OK: wait == 0, Wait: wait, Cause: Cause{Why: why}}
}

// latest is the charge that has to wait longest, the given one of equals, and how long. The
// limiters are asked, not charged.
func (p *Charges) latest(now time.Duration, at int) (last int, longest time.Duration) {
	for i := range p.n {
		e := p.at(i)
		wait := e.wait(now)
		if wait == 0 && p.shares {
			if n := p.besides(i); n > 0 {
				wait = e.limiter.Ask(now, e.Cost+n)
			}
		}
		if wait > longest || wait == longest && wait > 0 && i == at {
			last, longest = i, wait
		}
	}
	return last, longest
}

// besides is what is still to be taken for the charges before charge i from the
// same limiter: keys may share one, and each be met alone but not together.
func (p *Charges) besides(i int) (n int64) {
	last := p.at(i)
	for k := range i {
		if e := p.at(k); e.Registry == last.Registry && e.limiter == last.limiter && !e.held && !last.held {
			n += e.Cost
		}
	}
	return n
}

// wait is how long a charge has to wait by itself. A limiter that was evicted is looked up again.
func (e *entry) wait(now time.Duration) time.Duration {
	if e.held {
		return e.paused(now)
	}
	for {
		e.find(now)
		if wait := e.limiter.Ask(now, e.Cost); wait == 0 || !e.limiter.shape().retired() {
			return wait
		}
	}
}

// paused is how long a pause keeps what the store has granted from being used. It concerns
// the key: also one whose limiter has been taken out of use meanwhile.
func (e *entry) paused(now time.Duration) time.Duration {
	if e.Cost == 0 {
		return 0
	}
	wait := e.limiter.shape().pausedFor(now)
	if e.limiter.shape().retired() {
		wait = max(wait, e.Registry.Get(now, e.Key).shape().pausedFor(now))
	}
	return wait
}

// takeRest takes every charge that is not held yet, now. If one of them fails it gives back what
// it took. If ask is not -1, all else is held, and the store has to be asked for the shared ones, of
// which ask is the first: for all of them, since units of one that are held while the call waits for
// another would go later than they may.
func (p *Charges) takeRest(now time.Duration, first head) (got bool, ask int) {
	ask = -1
	var on core
	for i := range p.n {
		e := p.at(i)
		if e.held {
			continue
		}
		since := now
		if i == first.at && first.since > 0 {
			since = first.since
		}
		if e.turn, e.held = e.limiter.takeSince(now, since, e.Cost, &on); e.held {
			continue
		}
		if e.Registry.home != nil && !e.limiter.shape().retired() {
			if ask < 0 {
				ask = i
			}
			continue
		}
		p.dropLocal(now)
		return false, -1
	}
	if ask >= 0 {
		p.dropShared(now)
	}
	return ask < 0, ask
}

// dropShared gives back what the store has granted: it is told with the next ask.
func (p *Charges) dropShared(now time.Duration) {
	for i := range p.n {
		if e := p.at(i); e.Registry.home != nil {
			e.drop(now)
		}
	}
}

// dropLocal gives back what is held of limits that are this process's own: held for longer it
// would go on top of what came since.
func (p *Charges) dropLocal(now time.Duration) {
	for i := range p.n {
		if e := p.at(i); e.Registry.home == nil {
			e.drop(now)
		}
	}
}

// holdsLocal reports whether anything is held of limits that are this process's own.
func (p *Charges) holdsLocal() bool {
	for i := range p.n {
		if e := p.at(i); e.Registry.home == nil && e.held && e.Cost > 0 {
			return true
		}
	}
	return false
}

// find looks the limiter of a key up: it may have been evicted, or another may have taken its place.
func (e *entry) find(now time.Duration) { e.limiter = e.Registry.Get(now, e.Key) }

// Drop gives everything back that is held, and reports whether there was anything: the call is
// not made.
func (p *Charges) Drop(now time.Duration) (held bool) {
	for i := range p.n {
		held = p.at(i).drop(now) || held
	}
	return held
}

// drop gives back what a charge holds, if it holds anything.
func (e *entry) drop(now time.Duration) (held bool) {
	if held = e.held; held {
		e.limiter.Back(now, e.turn, bucket.All)
		e.held = false
	}
	return held
}

// Settle ends a permit after its call. used says for each unit what was really
// used: the rest of what was reserved goes back, and what went beyond it is owed
// and held against those who come next. Units it does not name, and all if it is
// nil, are settled at what was reserved.
func (p *Charges) Settle(now time.Duration, used map[string]int64) {
	for i := range p.n {
		e := p.at(i)
		if n, said := used[e.Registry.Limit().UnitName()]; e.held && said {
			e.settle(now, max(0, n))
			e.Registry.share(now, e.Key, n)
		} else if e.held {
			e.Registry.share(now, e.Key, e.Cost)
		}
		e.held = false
	}
}

// settle gives back what was not used, or charges what was used beyond the reservation. The debt is
// that of whoever has the key now.
func (e *entry) settle(now time.Duration, used int64) {
	if used < e.Cost {
		e.limiter.Back(now, e.turn, e.Cost-used)
	} else if used > e.Cost {
		e.Registry.Get(now, e.Key).Owe(now, used-e.Cost) // it may have been evicted since
	}
}

// Look is what the limiter of a charge's key looks like now. That may be another one than was
// charged, if that was evicted since.
func (p *Charges) Look(now time.Duration, i int) Level {
	e := p.at(i)
	return e.Registry.Get(now, e.Key).Look(now)
}

// Paused reports whether everyone has been stopped who is charged to the limiter of a charge.
func (p *Charges) Paused(now time.Duration, i int) bool {
	e := p.at(i)
	return e.Registry.Get(now, e.Key).shape().pausedFor(now) > 0
}

// Largest returns the largest cost of a charge; 0 if there are none.
func (p *Charges) Largest() (n int64) {
	for i := range p.Len() {
		n = max(n, p.at(i).Cost)
	}
	return n
}
