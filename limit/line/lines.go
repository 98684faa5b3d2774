package line

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// Lines are the lines of those who wait for things named by keys: a limit, and the key that
// it is counted by. A line exists while somebody waits in it. They are safe for concurrent
// use.
//
// One lock is for all of them: a call that has to wait in another line is in one of both at
// any time, and whoever ends its wait finds it.
type Lines struct {
	clock   clock.Clock
	waiting atomic.Int64

	mu     sync.Mutex
	config Config
	byKey  map[any]*Line
	flows  map[string]int // calls of each flow, in all lines
	came   uint64         // calls so far
	made   uint64         // lines so far
	keeps  int            // what is kept, in all lines
	unused []*waiter      // to be used again
	over   error          // why nobody is to wait any more; nil while calls may
}

// NewLines makes lines that live in the clock's time. The config must be valid.
func NewLines(c clock.Clock, conf Config) *Lines {
	return &Lines{clock: c, config: conf.WithDefaults(), byKey: make(map[any]*Line), flows: make(map[string]int)}
}

// Set changes the config. Those who wait go on waiting.
func (s *Lines) Set(c Config) {
	s.mu.Lock()
	s.config = c.WithDefaults()
	s.mu.Unlock()
}

// Empty reports whether nobody waits for anything: one atomic load.
func (s *Lines) Empty() bool { return s.waiting.Load() == 0 }

// Busy reports whether anybody waits for the thing, or something of it is kept, and the cost of
// those who wait.
func (s *Lines) Busy(key any) (cost time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.byKey[key]
	if l == nil {
		return 0, false
	}
	cost, _ = l.order.cost()
	return cost, true
}

// Try asks for a call that does not wait. If it cannot go, the place is that which it would
// have had at the spot.
func (s *Lines) Try(now time.Duration, c *Call, at func() Spot) (Step, Place) {
	c.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	step := c.Ask(now, now)
	if step.Kind == Go || step.Kind == Away {
		return step, Place{}
	}
	spot := at()
	l := s.byKey[spot.Key]
	if l == nil {
		return step, Place{Place: 1, Waiting: 1}
	}
	w := &waiter{call: c, line: l}
	w.at(spot)
	return step, l.place(w, l.order.priorities[c.Priority].flows[c.Flow], lookedAt)
}

// Wait has a call wait for its turn at a spot. The error is nil if it went, or is Away; else
// ErrLate, ErrFull, ErrRefused, what Fail was given, or the cause of ctx's end.
func (s *Lines) Wait(ctx context.Context, now time.Duration, c *Call, at Spot) (Place, error) {
	c.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(at.Key)
	defer s.tidy(l)
	return l.wait(ctx, now, c, at)
}

// bound brings priority and weight into their ranges; a weight of 0 is 1.
func (c *Call) bound() {
	c.Priority = min(max(c.Priority, 0), Priorities-1)
	c.Weight = min(max(c.Weight, 1), mostWeight)
}

// Away reports whether a call that went has to come Back.
func (c *Call) Away() bool { return c.away != nil }

// Back ends that a call is away, once, on every path: until then fewer of its line may go. One that has
// not got what it went for has cost its flow nothing.
func (s *Lines) Back(now time.Duration, c *Call, went bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := c.away
	l := w.line
	c.away = nil
	if l.away--; !went {
		l.order.refund(w)
	}
	s.leaves(w)
	l.due = max(l.due, now)
	l.kick(now)
	s.tidy(l)
}

// line is the line of a key.
func (s *Lines) line(key any) *Line {
	l := s.byKey[key]
	if l == nil {
		s.made++
		l = &Line{all: s, key: key, made: s.made}
		s.byKey[key] = l
	}
	return l
}

// lines are all of them, in the order in which they were made: simulators must repeat.
func (s *Lines) lines() []*Line {
	return slices.SortedFunc(maps.Values(s.byKey), func(a, b *Line) int { return cmp.Compare(a.made, b.made) })
}

// tidy forgets a line in which nobody waits.
func (s *Lines) tidy(l *Line) {
	if l.order.n == 0 && l.away == 0 && len(l.kept) == 0 && s.byKey[l.key] == l {
		delete(s.byKey, l.key)
	}
}

// comes counts a call that begins to wait.
func (s *Lines) comes(w *waiter) {
	s.waiting.Add(1)
	s.flows[w.call.Flow]++
}

// leaves counts a call that waits no more.
func (s *Lines) leaves(w *waiter) {
	s.waiting.Add(-1)
	if s.flows[w.call.Flow]--; s.flows[w.call.Flow] == 0 {
		delete(s.flows, w.call.Flow)
	}
}

// Kick has all lines ask again: what their first were told may hold no more, as a limit was raised or a
// pause lifted. Where nobody waits it is one atomic load.
func (s *Lines) Kick() {
	if s.Empty() {
		return
	}
	now := s.clock.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines() {
		l.kick(now)
	}
}

// KickOne has the line of one key ask again, if somebody waits there.
func (s *Lines) KickOne(now time.Duration, key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byKey[key]; l != nil {
		l.kick(now)
		s.tidy(l)
	}
}

// Fail ends the wait of all whom pick picks, with err: their breaker has opened, say. pick is called with
// the lock held, and must not block.
func (s *Lines) Fail(err error, pick func(Asker) bool) {
	if s.Empty() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, l := range s.lines() {
		l.fail(err, pick)
	}
}

// End ends every wait, and those that would begin later, with err. There is no way back.
func (s *Lines) End(err error) {
	s.mu.Lock()
	s.over = err
	s.mu.Unlock()
	s.Fail(err, func(Asker) bool { return true })
}

// Fail ends the wait of all whom pick picks.
func (l *Line) Fail(err error, pick func(Asker) bool) {
	if l.Empty() {
		return
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.fail(err, pick)
}

// End ends every wait, and those that would begin later.
func (l *Line) End(err error) {
	l.all.mu.Lock()
	l.all.over = err
	l.all.mu.Unlock()
	l.Fail(err, func(Asker) bool { return true })
}

func (l *Line) fail(err error, pick func(Asker) bool) {
	for _, w := range l.order.all() {
		if pick(w.call.Asker) {
			l.leave(w, err, someOf)
		}
	}
}
