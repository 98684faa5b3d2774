package weir

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/limit/pause"
)

// lineKey names what a line is for.
type lineKey struct {
	registry *limit.Registry
	key      string
}

// lineOf is the line for a charge. Keys for which a registry has no room share a limiter, and so a line.
func lineOf(now time.Duration, c limit.Charge) lineKey {
	if m, own := c.Registry.Own(now, c.Key); !own && m.Leased() == nil {
		return lineKey{c.Registry, limit.Other}
	}
	return lineKey{c.Registry, c.Key}
}

const (
	// So many at least and at most ask the store at once for a limit that a fleet
	// shares. They are combined into one call; one alone would get a unit for each of
	// them. But who is among them has come in turn and goes in no order any more, so
	// that there are not many more than can go while a slow store answers.
	fewestShared, mostShared = 2, 16
	slowAnswer               = 10 * time.Millisecond
)

// A waiter is a call that waits for its limits. It does not hold its permit: that would
// move to the heap, that of calls that never wait too. It has what the permit's limits had, and the
// walk takes them back when the wait is over; meanwhile the line's lock guards it.
type waiter struct {
	call line.Call
	concern
	breaker  *breaker.Breaker
	charged  charged
	limits   limit.Charges
	guessed  bool
	fair     bool   // its flow and its priority count
	few      bool   // few of its line ask the store at once
	at       int    // the charge in whose line it stands
	unheard  bool   // the rate of that charge is only a guess so far: see limit.Charges.Unheard
	wasFirst uint64 // the charges in whose lines it has been first

	scarce int           // a charge of which the store had too little
	until  time.Duration // and for how long it is not asked again

	verdict limit.Verdict // what the limits said last
	yields  bool          // it was that others come before, and not that there is not enough
	stop    stop          // what holds it, whatever they say
	rests   pause.Subject // in whose line it stands; the zero subject if in none
}

// newWaiter has the limits of the walk, which hold nothing, until the walk takes them back.
// c says in whose turn it waits.
func (w *walk) newWaiter(c *Call) *waiter {
	w.limits.Keep() // others look at what waits
	s := &waiter{
		concern: w.concern(), breaker: w.breaker, charged: w.charged, limits: w.limits, guessed: w.guessed, at: int(w.why),
	}
	s.call = line.Call{Asker: s, Until: max(w.now, w.until), Came: w.came}
	s.fair, s.few = w.by.fair, w.by.fair || mixed(&w.limits)
	if s.fair {
		s.call.Flow, s.call.Weight = boundedKey(cmp.Or(c.Flow, c.Keys[w.by.live.policy.Fair.By])), c.Weight
		s.call.Priority = w.by.linePriority(c)
	}
	return s
}

// Ask is the line's: it is on another goroutine's stack at times. It takes all that the call
// costs, or nothing.
func (s *waiter) Ask(now, since time.Duration) line.Step {
	left := s.call.Until - now
	s.stop = s.concern.stopped(now, &s.limits, false)
	if s.stop.wait > 0 {
		s.probes(now)
	}
	switch {
	case s.over(now):
		s.stop = stop{}
		return line.Step{Kind: line.Refuse}
	case s.stop.wait > left:
		return line.Step{Kind: line.Refuse} // those behind it may have nothing to do with that
	case s.stop.wait > 0:
		return s.rest(now)
	}
	switch v := s.take(now, since); {
	case v.OK:
		return line.Step{Kind: line.Go}
	case !s.yields && s.limits.Asks(v, left) && !(s.few && s.resting()):
		s.limits.Comes()
		return line.Step{Kind: line.Away, Room: s.room(now, v.Why)}
	case s.limits.Soonest(v.Why, v.Wait) > left && !mayRise(now, &s.limits, v):
		return line.Step{Kind: line.Refuse}
	case v.Why != s.at:
		s.waitsFor(v.Why)
		return line.Step{Kind: line.Move, For: v.Wait, Spot: s.spot(now)}
	default:
		if v.Wait > left { // it may rise, and then nobody here is late
			v.Wait = left
		}
		return line.Step{Kind: line.Wait, For: v.Wait, Again: nap}
	}
}

// rest is the step of a call that a pause holds, whatever its limits say: it waits in the line of that, out of the way of those
// whom the pause does not concern. When the pause ends the line's driver asks for all who rest there, in the order
// in which they came: those for whom there is not enough then wait on in the lines of their limits, and are not woken.
func (s *waiter) rest(now time.Duration) line.Step {
	if s.rests == s.stop.of {
		return line.Step{Kind: line.Wait, For: s.stop.wait, Again: nap}
	}
	s.restsBy(s.stop.of)
	return line.Step{Kind: line.Move, For: s.stop.wait, Spot: s.spot(now)}
}

// restsBy has it stand in the line of a pause.
func (s *waiter) restsBy(of pause.Subject) {
	if !s.resting() {
		s.u.resting.Add(1)
	}
	s.rests, s.at = of, -1
}

// waitsFor has it stand in the line of a charge, or in none.
func (s *waiter) waitsFor(at int) {
	if s.resting() {
		s.u.resting.Add(-1)
	}
	s.rests, s.at = pause.Subject{}, at
}

// resting reports whether it stands in the line of a pause.
func (s *waiter) resting() bool { return s.rests != pause.Subject{} }

// over reports whether the call need not wait here any more.
func (s *waiter) over(now time.Duration) bool {
	v := s.u.live.Load()
	return s.u.sleepers.closed.Load() || isOpen(now, s.breaker) || s.charged.moved(v)
}

// take takes what the call costs, unless it is for others to take some of it before. A guess that has
// become too much while it waited is cut down.
func (s *waiter) take(now, since time.Duration) limit.Verdict {
	s.verdict, s.yields = s.tries(now, since)
	if !s.verdict.OK && s.verdict.Wait == bucket.Never && s.guessed && s.limits.Fit(now) {
		s.verdict, s.yields = s.tries(now, since)
	}
	return s.verdict
}

func (s *waiter) tries(now, since time.Duration) (v limit.Verdict, yields bool) {
	if now < s.until {
		return limit.Verdict{Wait: s.until - now, Cause: limit.Cause{Why: s.scarce}}, true
	}
	at, wait := s.others(now)
	if wait == 0 {
		return s.limits.TakeSince(now, since, s.at), false
	}
	if v := s.limits.Ask(now, at); v.Wait >= wait {
		return v, false
	}
	return limit.Verdict{Wait: wait, Cause: limit.Cause{Why: at}}, true
}

// lacks has the call wait for what the store has too little of, and take nothing of the others meanwhile: two calls would
// take them from each other, and ask by turns. Something may come back before the store's wait is over.
func (s *waiter) lacks(now time.Duration, v limit.Verdict) {
	s.waitsFor(v.Why)
	s.scarce, s.until = v.Why, now+min(v.Wait, nap)
}

// shared reports whether a fleet shares the limit of a charge.
func (s *waiter) shared(i int) bool { return s.limits.Charge(i).Registry.Shared() }

// room is how many of the line may ask the store at once.
func (s *waiter) room(now time.Duration, at int) int {
	switch {
	case !s.few:
		return line.Most
	case !s.shared(at):
		return 1
	}
	return min(fewestShared+int(slowAnswer/max(takes(now, &s.limits, at), 1)), mostShared)
}

// others is for which charge, and how long, the call has to leave to others what there is: to those who wait
// in its line and came before, until it has been first there itself; and to those for whom it is kept.
func (s *waiter) others(now time.Duration) (at int, longest time.Duration) {
	if s.at >= 0 {
		if s.wasFirst |= 1 << s.at; s.limits.Len() == 1 && !s.u.lines.Keeps() {
			return s.at, 0
		}
	}
	for i := range s.limits.Len() {
		c := s.limits.Charge(i)
		if c.Cost == 0 {
			continue
		}
		key := lineOf(now, c)
		wait := s.kept(now, c, key)
		if s.wasFirst&(1<<i) == 0 && s.u.lines.Behind(key, &s.call) {
			wait = max(wait, 1)
		}
		if wait > longest || wait == longest && i == s.at {
			at, longest = i, wait
		}
	}
	return at, longest
}

// kept is how long a charge has to wait at least for what is kept for calls that came before: until the next
// instant at which that can change. What is needed earlier goes before what is needed later.
func (s *waiter) kept(now time.Duration, c limit.Charge, key lineKey) time.Duration {
	no, next, sum := false, bucket.Never, c.Cost
	m := c.Registry.Get(now, c.Key)
	for k := range s.u.lines.Kept(now, key, &s.call) {
		need := k.Asker.(*waiter).cost(now, key)
		room := m.Room(now, sum, max(now, k.At), need)
		no = no || !room
		switch {
		case k.At > now:
			next = min(next, k.At-now)
		case room:
			next = min(next, k.Until-now)
		default:
			next = min(next, k.Until-now, max(1, m.After(now, sum, need)))
		}
		sum += need
	}
	if no {
		return next
	}
	return 0
}

// cost is what the call pays of what a line is for.
func (s *waiter) cost(now time.Duration, key lineKey) (n int64) {
	for i := range s.limits.Len() {
		if c := s.limits.Charge(i); c.Registry == key.registry && lineOf(now, c) == key {
			n += c.Cost
		}
	}
	return n
}

// spot is the line of the charge for which the call waits, or that of the pause that holds it.
func (s *waiter) spot(now time.Duration) line.Spot {
	if s.resting() {
		return line.Spot{Key: s.rests, Cost: 1}
	}
	c := s.limits.Charge(s.at)
	at := line.Spot{Key: lineOf(now, c), Cost: takes(now, &s.limits, s.at), Units: c.Cost}
	s.unheard = s.limits.Unheard(s.at)
	if l := c.Registry.Limit(); (l.Shape == limit.Bucket || !c.Registry.Shared()) && !s.unheard {
		of := s.at
		at.After = func(now time.Duration, ahead int64) time.Duration {
			return s.limits.Soonest(of, c.Registry.Get(now, c.Key).After(now, ahead, c.Cost))
		}
	}
	return at
}

// takes is how long it takes until as much comes of a limit as the call costs, an
// hour at most.
func takes(now time.Duration, p *limit.Charges, i int) time.Duration {
	c := p.Charge(i)
	rate := p.Look(now, i).PerSecond
	if !(rate > 0) {
		rate = c.Registry.Limit().PerSecond()
	}
	return time.Duration(min(float64(c.Cost)/rate*float64(time.Second), float64(time.Hour)))
}
