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

// Lines are the queues for things identified by keys: a limit and a key of it. A queue exists while a call waits in
// it. Lines are safe for concurrent use.
//
// One lock protects all queues: a call that moves to another queue is in one of both at any time, and the caller that
// ends its wait finds it.
type Lines struct {
	clock   clock.Clock
	waiting atomic.Int64

	mu     sync.Mutex
	config Config
	byKey  map[any]*Line
	flows  map[string]int // calls of each flow, in all queues
	came   uint64         // number of calls so far
	made   uint64         // number of queues so far
	keeps  int            // number of reservations in all queues
	unused []*waiter      // for reuse
	over   error          // why no call may wait any longer; nil while calls may
}

// NewLines returns queues that use the clock. The config must be valid.
func NewLines(c clock.Clock, conf Config) *Lines {
	return &Lines{clock: c, config: conf.WithDefaults(), byKey: make(map[any]*Line), flows: make(map[string]int)}
}

// Set changes the config. Waiting calls are not affected.
func (s *Lines) Set(c Config) {
	s.mu.Lock()
	s.config = c.WithDefaults()
	s.mu.Unlock()
}

// Empty reports whether no call waits. It costs one atomic load.
func (s *Lines) Empty() bool { return s.waiting.Load() == 0 }

// Busy reports whether a call waits for the key or has a reservation, and the cost of all waiting calls.
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

// Try asks for a call that does not wait. If it cannot go, the Place is the one that it would have at the spot.
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

// Wait makes a call wait for its turn at a spot. The error is nil if the call went or is Away. Otherwise it is
// ErrLate, ErrFull, ErrRefused, the error given to Fail, or the cause of ctx's end.
func (s *Lines) Wait(ctx context.Context, now time.Duration, c *Call, at Spot) (Place, error) {
	c.bound()
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.line(at.Key)
	defer s.tidy(l)
	return l.wait(ctx, now, c, at)
}

// bound limits priority and weight to their ranges. A weight of 0 becomes 1.
func (c *Call) bound() {
	c.Priority = min(max(c.Priority, 0), Priorities-1)
	c.Weight = min(max(c.Weight, 1), mostWeight)
}

// Away reports whether the call went and must come Back.
func (c *Call) Away() bool { return c.away != nil }

// Back ends that a call is away. It must be called once on every path: until then fewer calls of its queue may go.
// went is false for a call that did not get what it asked for. Its flow is then not charged.
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

// line returns the queue of a key.
func (s *Lines) line(key any) *Line {
	l := s.byKey[key]
	if l == nil {
		s.made++
		l = &Line{all: s, key: key, made: s.made}
		s.byKey[key] = l
	}
	return l
}

// lines returns all queues in the order of their creation, because simulations must be repeatable.
func (s *Lines) lines() []*Line {
	return slices.SortedFunc(maps.Values(s.byKey), func(a, b *Line) int { return cmp.Compare(a.made, b.made) })
}

// tidy removes a queue in which no call waits.
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

// leaves counts a call that stops waiting.
func (s *Lines) leaves(w *waiter) {
	s.waiting.Add(-1)
	if s.flows[w.call.Flow]--; s.flows[w.call.Flow] == 0 {
		delete(s.flows, w.call.Flow)
	}
}

// Kick makes all queues ask again, after a limit was raised or a pause lifted. If no call waits, it costs one atomic
// load.
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

// KickOne makes the queue of one key ask again.
func (s *Lines) KickOne(now time.Duration, key any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.byKey[key]; l != nil {
		l.kick(now)
		s.tidy(l)
	}
}

// Fail ends with err the wait of all calls that pick selects, for example because their breaker has opened. pick is
// called with the lock held and must not block.
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

// End ends all waits with err, also later ones. It cannot be undone.
func (s *Lines) End(err error) {
	s.mu.Lock()
	s.over = err
	s.mu.Unlock()
	s.Fail(err, func(Asker) bool { return true })
}

// Fail ends with err the wait of all calls that pick selects.
func (l *Line) Fail(err error, pick func(Asker) bool) {
	if l.Empty() {
		return
	}
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	l.fail(err, pick)
}

// End ends all waits with err, also later ones.
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
