package limit

import (
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Charge is one limit, one key, one cost.
type Charge struct {
	Registry *Registry
	Key      string
	Cost     int64 // in the limit's unit; 0 takes nothing
}

// A Permit takes the charges of one call, all or none. Add the charges, then
// call Take until it says to go or not to. It is for one goroutine; the zero
// Permit has no charges and is granted at once.
//
// While one limit makes the call wait, only that limit holds a turn for it; the
// others are taken when the turn comes, so that no limit stands still for a call
// that waits for another. With no patience, as the root asks, none holds anything.
type Permit struct {
	n     int
	first [2]entry // most calls have no more
	more  []entry

	awaited int           // 1 + the charge that the call was last told to wait for
	told    time.Duration // and until when
	late    time.Duration // how late it came for a turn, at worst
}

type entry struct {
	Charge
	limiter *Limiter
	turn    Turn
	held    bool
	fresh   bool // taken in this round, without a wait
	sent    bool // counted in the limiter's belief
}

// Add adds a charge. Charges to the same limit and key are one: apart, each could
// be met and the two of them never.
func (p *Permit) Add(c Charge) {
	for i := range p.n {
		if e := p.at(i); e.Registry == c.Registry && e.Key == c.Key {
			e.Cost += c.Cost
			return
		}
	}
	if p.n < len(p.first) {
		p.first[p.n].Charge, p.first[p.n].held, p.first[p.n].sent = c, false, false
	} else {
		p.more = append(p.more, entry{Charge: c})
	}
	p.n++
}

// Reset forgets the charges of a permit that holds nothing, for another call.
func (p *Permit) Reset() { p.n, p.more, p.awaited, p.late = 0, p.more[:0], 0, 0 }

// Late is how much later than its turn the call woke; for several turns the most.
func (p *Permit) Late() time.Duration { return p.late }

// Len is how many charges there are, and Charge one of them.
func (p *Permit) Len() int            { return p.n }
func (p *Permit) Charge(i int) Charge { return p.at(i).Charge }

// Turn is what a charge holds, if it holds anything.
func (p *Permit) Turn(i int) Turn { return p.at(i).turn }

// Holds reports whether a charge is taken.
func (p *Permit) Holds(i int) bool { return p.at(i).held }

func (p *Permit) at(i int) *entry {
	if i < len(p.first) {
		return &p.first[i]
	}
	return &p.more[i-len(p.first)]
}

// Fit makes charges smaller that are more than their limit holds now, and reports whether
// there were any. It is for a permit that holds nothing and whose costs are guesses:
// a limit may be told that it holds less while a call waits.
func (p *Permit) Fit(now time.Duration) (fitted bool) {
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
	OK   bool          // go now if Wait is 0; else wait and ask again
	Ask  bool          // nothing said no here, but the store has to be asked: call Fetch
	Wait time.Duration // if not OK, how long it would have been; bucket.Never if the cost can never be met
	Cause
}

// A Cause is which charge makes a call wait or said no, and what was lacking.
type Cause struct {
	Why  int  // the charge
	Lack Lack // if not OK: what this process lacks that has to go on without the store
}

// Take takes the charges, or says how long to wait before asking again. If that
// would be longer than patience it says no, and nothing is held any more.
func (p *Permit) Take(now, patience time.Duration) Verdict {
	if p.n == 1 && !p.first[0].held {
		return p.tell(now, p.first[0].take(now, patience))
	}
	return p.takeAll(now, patience, head{})
}

// A head is the charge in whose line a call is first, and since when it has been entitled to go.
type head struct {
	at    int
	since time.Duration
}

// TakeSince is Take without patience for a call that is the first of those who wait for one of its
// charges, and has been entitled to go since an instant: what has come of that limit since then, and within
// mostLate, counts even if its burst is smaller, so that it does not stand still while nobody got round to
// asking.
func (p *Permit) TakeSince(now, since time.Duration, at int) Verdict {
	if since >= now {
		return p.Take(now, 0)
	}
	v := p.takeAll(now, 0, head{at, max(since, now-mostLate)})
	if v.OK {
		p.late = max(p.late, now-since)
	}
	return v
}

// take is takeAll for a call that has one charge and asks for the first time,
// which is nearly every call.
func (e *entry) take(now, patience time.Duration) Verdict {
	for {
		e.find(now)
		t, wait, ok := e.limiter.Take(now, e.Cost, patience)
		if !ok && e.limiter.Retired() {
			continue
		}
		if ok {
			e.turn, e.held = t, true
		} else if e.Registry.home != nil {
			return e.unmet(now, patience)
		}
		return Verdict{OK: ok, Wait: wait}
	}
}

// unmet is what becomes of a charge of a shared limit that this process holds not
// enough for.
func (e *entry) unmet(now, patience time.Duration) Verdict {
	wait := e.limiter.Ask(now, e.Cost)
	return Verdict{Wait: wait, Ask: wait <= patience && wait != bucket.Never}
}

// tell notes what the call is told to wait for.
func (p *Permit) tell(now time.Duration, v Verdict) Verdict {
	if v.OK && v.Wait > 0 {
		p.awaited, p.told = v.Why+1, now+v.Wait
	}
	return v
}

func (p *Permit) takeAll(now, patience time.Duration, first head) Verdict {
	p.dropPassed(now)
	for {
		why, wait := p.latest(now, first.at)
		switch {
		case wait > patience || wait == bucket.Never:
			p.Drop(now)
			return Verdict{Wait: wait, Cause: Cause{Why: why}}
		case wait == 0:
			got, ask := p.takeRest(now, first)
			if got || ask {
				return Verdict{OK: got, Ask: ask}
			}
			continue // somebody was faster; look again
		}
		e := p.at(why)
		if e.Registry.home != nil {
			e.drop(now) // a pause came: what the store has granted does not keep so long
		}
		if !e.held {
			v := e.take(now, patience)
			if wait = v.Wait; !v.OK {
				p.Drop(now)
				return Verdict{Wait: wait, Ask: v.Ask, Cause: Cause{Why: why}}
			}
			if wait == 0 {
				continue
			}
		}
		p.dropStale(now, now+wait, why)
		return p.tell(now, Verdict{OK: true, Wait: wait, Cause: Cause{Why: why}})
	}
}

// Ask is how long the call would have to wait, and for which charge: the given one if no other
// takes longer. It takes nothing.
func (p *Permit) Ask(now time.Duration, at int) Verdict {
	why, wait := p.latest(now, at)
	return Verdict{OK: wait == 0, Wait: wait, Cause: Cause{Why: why}}
}

// latest is the charge that has to wait longest, the given one of equals, and how long. The
// limiters are asked, not charged.
func (p *Permit) latest(now time.Duration, at int) (last int, longest time.Duration) {
	for i := range p.n {
		e := p.at(i)
		wait := e.wait(now)
		if n := p.besides(i); n > 0 && wait == 0 {
			wait = e.limiter.Ask(now, e.Cost+n)
		}
		if wait > longest || wait == longest && wait > 0 && i == at {
			last, longest = i, wait
		}
	}
	return last, longest
}

// besides is what is still to be taken for the charges before charge i from the
// same limiter: keys may share one, and each be met alone but not together.
func (p *Permit) besides(i int) (n int64) {
	last := p.at(i)
	for k := range i {
		if e := p.at(k); e.Registry == last.Registry && e.limiter == last.limiter && !e.held && !last.held {
			n += e.Cost
		}
	}
	return n
}

func (e *entry) wait(now time.Duration) time.Duration {
	if e.held {
		return e.due(now)
	}
	for {
		e.find(now)
		if wait := e.limiter.Ask(now, e.Cost); wait == 0 || !e.limiter.Retired() {
			return wait
		}
	}
}

// due is how long a turn still has to wait. A pause concerns the key: it stops one
// whose limiter has been taken out of use meanwhile, too.
func (e *entry) due(now time.Duration) time.Duration {
	wait := e.limiter.Due(now, e.turn)
	if e.limiter.Retired() {
		wait = max(wait, e.Registry.Get(now, e.Key).Look(now).Paused)
	}
	return wait
}

// takeRest takes every charge that is not held yet, now. If one of them fails it
// gives back what it took, but no turn that the call has waited for. ask says that
// all else is held, and the store has to be asked for the shared ones: for all of them,
// since units of one that are held while the call waits for another would go later than
// they may.
func (p *Permit) takeRest(now time.Duration, first head) (got, ask bool) {
	for i := range p.n {
		e := p.at(i)
		if e.fresh = !e.held; !e.fresh {
			continue
		}
		since := now
		if i == first.at && first.since > 0 {
			since = first.since
		}
		if e.turn, e.held = e.limiter.takeSince(now, since, e.Cost); e.held {
			continue
		}
		if e.Registry.home != nil && !e.limiter.Retired() {
			ask = true
			continue
		}
		p.dropFresh(now, i)
		return false, false
	}
	if ask {
		p.dropShared(now)
	}
	return !ask, ask
}

func (p *Permit) dropShared(now time.Duration) {
	for i := range p.n {
		if e := p.at(i); e.Registry.home != nil {
			e.drop(now)
		}
	}
}

func (p *Permit) dropFresh(now time.Duration, n int) {
	for i := range n {
		if e := p.at(i); e.fresh && e.held {
			e.drop(now)
		}
	}
}

func (e *entry) find(now time.Duration) { e.limiter = e.Registry.Get(now, e.Key) }

// dropStale gives back turns that will be no good any more at the instant until
// which the call has to wait for the charge why.
func (p *Permit) dropStale(now, then time.Duration, why int) {
	for i := range p.n {
		e := p.at(i)
		if i == why || !e.held {
			continue
		}
		// What the store has granted must be used soon: it is not held while another
		// limit makes the call wait.
		if e.Registry.home != nil && then > now || !e.limiter.Usable(then, e.turn) {
			e.drop(now)
		}
	}
}

// dropPassed gives back turns that the burst has passed while the call waited.
// The turn that it waited for is good even if the call comes a little late for it, but not
// if a faster rate brought it forward and the call, which could not know, comes late for
// that: neither at the instant that it was told, nor if it looks before.
func (p *Permit) dropPassed(now time.Duration) {
	p.dropStale(now, now, p.awaited-1)
	if p.awaited > 0 {
		p.late = max(p.late, now-p.told)
		e := p.at(p.awaited - 1)
		if e.held && e.limiter.missed(now, min(p.told, now+1), e.turn) {
			e.drop(now)
		}
	}
	p.awaited = 0
}

// Drop gives everything back that is held, and reports whether there was anything: the call is
// not made.
func (p *Permit) Drop(now time.Duration) (held bool) {
	for i := range p.n {
		held = p.at(i).drop(now) || held
	}
	return held
}

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
func (p *Permit) Settle(now time.Duration, used map[string]int64) {
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

func (e *entry) settle(now time.Duration, used int64) {
	if used < e.Cost {
		e.limiter.Back(now, e.turn, e.Cost-used)
	} else if used > e.Cost {
		e.Registry.Get(now, e.Key).Owe(now, used-e.Cost) // it may have been evicted since
	}
}

// Look is what the limiter of a charge looks like.
func (p *Permit) Look(now time.Duration, i int) Level {
	e := p.at(i)
	return e.Registry.Get(now, e.Key).Look(now)
}

// Paused reports whether everyone has been stopped who is charged to the limiter of a charge.
func (p *Permit) Paused(now time.Duration, i int) bool {
	e := p.at(i)
	return e.Registry.Get(now, e.Key).paused(now)
}

// Pause stops everyone who is charged to the limiter of a charge.
func (p *Permit) Pause(now time.Duration, i int, until time.Duration) {
	e := p.at(i)
	e.Registry.Get(now, e.Key).Pause(now, until)
}
