package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Charge is one limit, one key and one cost. The zero Charge has no limit.
type Charge struct {
	Registry *Registry
	Key      string
	Cost     int64 // in the limit's unit; 0 takes nothing
}

// Charges are all costs of one call, which are taken together or not at all. Add them, then call Take. They are not
// safe for concurrent use. The zero Charges are empty and always granted.
//
// A waiting call holds nothing, so that it does not block one limit while it waits for another. While Fetch asks for
// shared units, the other charges may be held. Take takes them again afterwards.
type Charges struct {
	n      int
	first  [2]entry // enough for most calls
	rest   *rest
	lent   uint32 // number of the present use of rest
	shares bool   // two charges are of one limit: their keys may share a limiter

	late time.Duration // how much later than its turn it woke, at most
	came uint64        // Fetch.Came of the latest Fetch; 0 before the first
}

// An entry is a charge and what it holds.
type entry struct {
	Charge
	limiter *Limiter
	turn    Turn
	held    bool
	sent    bool  // counted in the limiter's advertised
	least   int64 // for a budget: Cost as added; set only if most is
	most    int64 // for a budget: the largest cost that the call can have; 0 unless Cost may change
}

// Add adds a charge. It merges charges to the same limit and key: otherwise each could be granted although the limit
// can never grant both.
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

// AddAnother is Add for a charge to a limit that no other charge has. It saves comparing all of them.
func (p *Charges) AddAnother(c Charge) {
	e := p.another()
	e.Charge, e.limiter, e.held, e.sent, e.most = c, nil, false, false, 0
}

// AddBudget is AddAnother for a charge to a budget whose Cost is expected. If little is left, the call takes more, up
// to the
// largest cost that it can have. A largest cost of 0 is unknown.
func (p *Charges) AddBudget(c Charge, most int64) {
	e := p.another()
	e.Charge, e.limiter, e.held, e.sent, e.least, e.most = c, nil, false, false, c.Cost, max(0, most)
}

// Reset removes the charges, which must hold nothing, for another call.
func (p *Charges) Reset() { p.n, p.shares, p.late, p.came = 0, false, 0, 0 }

// Late returns how much later than its turn the call woke; for several turns the largest value.
func (p *Charges) Late() time.Duration { return p.late }

// Len returns the number of charges, and Charge one of them.
func (p *Charges) Len() int            { return p.n }
func (p *Charges) Charge(i int) Charge { return p.at(i).Charge }

// Turn returns what a charge holds.
func (p *Charges) Turn(i int) Turn { return p.at(i).turn }

// Holds reports whether a charge is taken. Between two calls of Take that applies only to what Fetch got, and to
// other charges while Fetch asks.
func (p *Charges) Holds(i int) bool { return p.at(i).held }

// at returns the charge with an index, in the order of Add.
func (p *Charges) at(i int) *entry {
	if i < len(p.first) {
		return &p.first[i]
	}
	return &p.rest.entries[i-len(p.first)]
}

// Fit reduces charges that exceed what their limit can hold now, and reports whether there were any. It is for
// estimated costs, of a call that holds nothing: a limit may shrink while the call waits. Charges to budgets stay,
// because
// a call that may cost more than the budget must not be made.
func (p *Charges) Fit(now time.Duration) (fitted bool) {
	for i := range p.n {
		e := p.at(i)
		if burst := e.Registry.Burst(now, e.Key); e.Cost > burst && burst > 0 && !e.held && !e.Registry.budget {
			e.Cost, fitted = burst, true
		}
	}
	return fitted
}

// A Verdict is the result of Take. It must not exceed four fields: the compiler keeps larger structs in memory, which
// makes a decision 50% slower.
type Verdict struct {
	OK   bool          // everything is held
	Ask  bool          // no local limit refuses, but the store must be asked: call Fetch
	Wait time.Duration // if not OK, the least time until the units are available; bucket.Never if the cost can never be met
	Cause
}

// A Cause is the charge that makes a call wait or refuses it, and the reason for the shortage.
type Cause struct {
	Why  int  // index of the charge
	Lack Lack // if not OK: the shortage of this process while it has no access to the store
}

// Take takes all charges now, or returns how long it takes until they are available. Then the call holds nothing,
// unless the store has to be asked.
func (p *Charges) Take(now time.Duration) Verdict {
	if p.n == 1 && !p.first[0].held {
		return p.first[0].take(now)
	}
	return p.takeAll(now, head{})
}

// A head is the charge in whose queue a call is first, and since when it has been entitled to go.
type head struct {
	at    int
	since time.Duration
}

// TakeSince is Take for a call at the head of the queue of a charge, which has been entitled to go since an instant.
// Units that the limit has produced since then count even beyond its burst, at most for mostLate. Otherwise a queue
// that wakes late would waste them.
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

// take is takeAll for a call with one charge, as nearly every call has.
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

// unmet returns the verdict for a shared limit if this process holds too few of its units.
func (e *entry) unmet(now time.Duration) Verdict {
	wait := e.limiter.Ask(now, e.Cost)
	return Verdict{Wait: wait, Ask: wait == 0}
}

// takeAll asks all limits before it takes units of any, so that a refusal changes none. If a limit refuses
// afterwards, it returns what it took. It repeats only if another call took units meanwhile, so it terminates.
func (p *Charges) takeAll(now time.Duration, first head) Verdict {
	p.dropLocal(now)
	for {
		why, wait := p.latest(now, first.at)
		if wait > 0 {
			p.Drop(now) // the store's grant does not stay valid so long
			return Verdict{Wait: wait, Cause: Cause{Why: why}}
		}
		switch got, ask := p.takeRest(now, first); {
		case got:
			return Verdict{OK: true}
		case ask >= 0:
			return Verdict{Ask: true, Cause: Cause{Why: ask}}
		} // else another call was faster; look again
	}
}

// Asks reports whether a refused call that waits at most patience should ask the store with Fetch. The store may
// grant more than this process knows of.
func (p *Charges) Asks(v Verdict, patience time.Duration) bool {
	return v.Ask || !v.OK && v.Wait <= patience && p.Charge(v.Why).Registry.Shared()
}

// Ask returns how long the call would have to wait, and for which charge: the given one unless another takes longer.
// It takes nothing.
func (p *Charges) Ask(now time.Duration, at int) Verdict {
	why, wait := p.latest(now, at)
	return Verdict{OK: wait == 0, Wait: wait, Cause: Cause{Why: why}}
}

// latest returns the charge with the longest wait, and that wait. Of equal waits it prefers the given charge. It
// takes nothing.
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

// besides returns the units that earlier charges are about to take from the same limiter as charge i. Keys may share
// a limiter, and each charge may be met alone but not together.
func (p *Charges) besides(i int) (n int64) {
	last := p.at(i)
	for k := range i {
		if e := p.at(k); e.Registry == last.Registry && e.limiter == last.limiter && !e.held && !last.held {
			n += e.Cost
		}
	}
	return n
}

// wait returns how long a charge has to wait by itself. It looks an evicted limiter up again.
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

// paused returns how long a pause prevents the use of units that the store has granted. A pause applies to the key,
// even if the limiter was replaced.
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

// takeRest takes every charge that is not held yet. If one fails, it returns what it took. If ask is not -1, all
// others are held, and the store must be asked for all shared charges. ask is the first of them. Granted shared units
// are given back first: units that are held while the call waits for others would be used too late.
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

// dropShared returns what the store has granted. The next request to the store reports it.
func (p *Charges) dropShared(now time.Duration) {
	for i := range p.n {
		if e := p.at(i); e.Registry.home != nil {
			e.drop(now)
		}
	}
}

// dropLocal returns the held units of local limits. If they were held longer, they would be used in addition to the
// units that came since.
func (p *Charges) dropLocal(now time.Duration) {
	for i := range p.n {
		if e := p.at(i); e.Registry.home == nil {
			e.drop(now)
		}
	}
}

// holdsLocal reports whether any units of local limits are held.
func (p *Charges) holdsLocal() bool {
	for i := range p.n {
		if e := p.at(i); e.Registry.home == nil && e.held && e.Cost > 0 {
			return true
		}
	}
	return false
}

// find looks up the limiter of a key, which may have been evicted or replaced.
func (e *entry) find(now time.Duration) {
	e.limiter = e.Registry.Get(now, e.Key)
	if e.most > 0 && !e.held {
		e.prices(now)
	}
}

// Drop returns everything that is held, because the call is not made. It reports whether there was anything.
func (p *Charges) Drop(now time.Duration) (held bool) {
	for i := range p.n {
		held = p.at(i).drop(now) || held
	}
	return held
}

// drop returns what a charge holds.
func (e *entry) drop(now time.Duration) (held bool) {
	if held = e.held; held {
		if e.held = false; e.Registry.budget {
			e.settleHold(now, 0)
			return held
		}
		e.limiter.Back(now, e.turn, bucket.All)
	}
	return held
}

// Settle ends a permit after its call. used has the actual usage by unit. Reserved units that were not used return,
// and additional usage becomes debt, for which later calls wait. Units that used does not contain are settled as
// reserved.
func (p *Charges) Settle(now time.Duration, used map[string]int64) {
	for i := range p.n {
		e := p.at(i)
		if n, said := used[e.Registry.Limit().UnitName()]; e.held && said {
			e.settle(now, max(0, n))
			e.Registry.share(now, e.Key, n)
		} else if e.held {
			if e.Registry.budget {
				e.settleHold(now, e.Cost)
			}
			e.Registry.share(now, e.Key, e.Cost)
		}
		e.held = false
	}
}

// settle returns unused units or charges additional usage. The debt is charged to the present limiter of the key.
func (e *entry) settle(now time.Duration, used int64) {
	switch {
	case e.Registry.budget:
		e.settleHold(now, used)
	case used < e.Cost:
		e.limiter.Back(now, e.turn, e.Cost-used)
	case used > e.Cost:
		e.Registry.Get(now, e.Key).Owe(now, used-e.Cost) // it may have been evicted since
	}
}

// Look returns the state of the limiter of a charge's key. It may be another limiter than was charged, if that was
// evicted.
func (p *Charges) Look(now time.Duration, i int) Level {
	e := p.at(i)
	if e.most > 0 && !e.held {
		e.find(now)
	}
	return e.Registry.Get(now, e.Key).Look(now)
}

// Paused reports whether a pause stops all callers of a charge's limiter.
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
