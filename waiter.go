package weir

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/limit/line"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A lineKey identifies a queue.
type lineKey struct {
	registry *limit.Registry
	key      string
}

// lineOf returns the queue for a charge. Keys beyond a registry's maximum share a limiter, and therefore a queue.
func lineOf(now time.Duration, c limit.Charge) lineKey {
	if m, own := c.Registry.Own(now, c.Key); !own && m.Leased() == nil {
		return lineKey{c.Registry, limit.Other}
	}
	return lineKey{c.Registry, c.Key}
}

const (
	// Bounds of how many calls ask the store together for a limit that a fleet shares. Their requests are combined
	// into one, whereas a single call would get only its own units. But the calls among them proceed in any order, so
	// there are not many more than can proceed while a slow store responds.
	fewestShared, mostShared = 2, 16
	slowAnswer               = 10 * time.Millisecond
)

// A waiter is a call that waits for its limits. It does not point to the permit, which would then move to the heap,
// also for calls that never wait. It has the permit's charges until the walk takes them back after the wait.
// Meanwhile the queue's lock guards it.
type waiter struct {
	call line.Call
	concern
	breaker  *breaker.Breaker
	charged  charged
	limits   limit.Charges
	guessed  bool
	fair     bool   // flow and priority apply
	few      bool   // only a few calls of its queue ask the store together
	at       int    // index of the charge in whose queue it waits
	unheard  bool   // the rate of that charge is an estimate so far; see limit.Charges.Unheard
	wasFirst uint64 // bits of the charges in whose queues it has been at the head

	scarce int           // index of a charge of which the store had too few units
	until  time.Duration // until when the store is not asked again for it

	verdict limit.Verdict // last verdict of the limits
	yields  bool          // other calls come first, although there are enough units
	stop    stop          // a pause that holds it independently of its limits
	rests   pause.Subject // the pause in whose queue it waits; zero if none
}

// newWaiter returns a waiter with the charges of the walk, which must hold no units. c has its flow and priority.
func (w *walk) newWaiter(c *Call) *waiter {
	w.limits.Keep() // other goroutines read what waits
	s := &waiter{
		concern: w.concern(), breaker: w.breaker, charged: w.charged, limits: w.limits, guessed: w.guessed, at: int(w.why),
	}
	s.call = line.Call{Asker: s, Until: max(w.now, w.until), Came: w.came}
	s.fair, s.few = w.by.fair, w.inTurn()
	if s.fair {
		s.call.Flow, s.call.Weight = w.by.flow(c), c.Weight
		s.call.Priority = w.by.linePriority(c)
	}
	return s
}

// Ask implements line.Asker. It may run on another goroutine. It takes the complete cost or nothing.
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
		return line.Step{Kind: line.Refuse} // the pause may not apply to the calls behind it
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
		if v.Wait > left { // the rate may rise, and then no call here is late
			v.Wait = left
		}
		return line.Step{Kind: line.Wait, For: v.Wait, Again: nap}
	}
}

// rest returns the step of a call that a pause holds. It waits in the queue of the pause, so that it blocks no call
// to which the pause does not apply. When the pause ends, the queue's driver asks for all its calls in order of
// arrival. Calls for which there are too few units move to the queues of their limits without being woken.
func (s *waiter) rest(now time.Duration) line.Step {
	if s.rests == s.stop.of {
		return line.Step{Kind: line.Wait, For: s.stop.wait, Again: nap}
	}
	s.restsBy(s.stop.of)
	return line.Step{Kind: line.Move, For: s.stop.wait, Spot: s.spot(now)}
}

// restsBy sets the pause in whose queue it waits.
func (s *waiter) restsBy(of pause.Subject) {
	if !s.resting() {
		s.u.resting.Add(1)
	}
	s.rests, s.at = of, -1
}

// waitsFor sets the charge in whose queue it waits, -1 for none.
func (s *waiter) waitsFor(at int) {
	if s.resting() {
		s.u.resting.Add(-1)
	}
	s.rests, s.at = pause.Subject{}, at
}

// resting reports whether it waits in the queue of a pause.
func (s *waiter) resting() bool { return s.rests != pause.Subject{} }

// over reports whether the call must no longer wait here.
func (s *waiter) over(now time.Duration) bool {
	v := s.u.live.Load()
	return s.u.sleepers.closed.Load() || isOpen(now, s.breaker) || s.charged.moved(v)
}

// take takes the call's cost, unless other calls come first. An estimate that has come to exceed a limit during the
// wait is reduced.
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

// lacks makes the call wait for the limit whose units the store lacks, and take no units of other limits meanwhile.
// Otherwise two calls could take units from each other in turn. It asks again early, because units may return before
// the store's wait is over.
func (s *waiter) lacks(now time.Duration, v limit.Verdict) {
	s.waitsFor(v.Why)
	s.scarce, s.until = v.Why, now+min(v.Wait, nap)
}

// shared reports whether a fleet shares the limit of a charge.
func (s *waiter) shared(i int) bool { return s.limits.Charge(i).Registry.Shared() }

// room returns how many calls of the queue may ask the store together.
func (s *waiter) room(now time.Duration, at int) int {
	switch {
	case !s.few:
		return line.Most
	case !s.shared(at):
		return 1
	}
	return min(fewestShared+int(slowAnswer/max(takes(now, &s.limits, at), 1)), mostShared)
}

// others returns for which charge, and how long, the call must leave units to other calls. These are earlier calls of
// its queue, until it has been at the head itself, and calls for which units are reserved.
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

// kept returns how long a charge must wait at least because of units reserved for earlier calls: until the next
// instant at which that can change. Units needed earlier take precedence.
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

// cost returns what the call pays of the limit and key of a queue.
func (s *waiter) cost(now time.Duration, key lineKey) (n int64) {
	for i := range s.limits.Len() {
		if c := s.limits.Charge(i); c.Registry == key.registry && lineOf(now, c) == key {
			n += c.Cost
		}
	}
	return n
}

// spot returns the call's position data for the queue of its charge or pause.
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

// takes returns how long a limit needs to produce the call's cost, at most an hour.
func takes(now time.Duration, p *limit.Charges, i int) time.Duration {
	c := p.Charge(i)
	rate := p.Look(now, i).PerSecond
	if !(rate > 0) {
		rate = c.Registry.Limit().PerSecond()
	}
	return time.Duration(min(float64(c.Cost)/rate*float64(time.Second), float64(time.Hour)))
}
