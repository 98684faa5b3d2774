// Package fair decides who of those that wait for the same thing goes next: one
// after the other in the order of start-time fair queueing over flows, so that a
// flow with a thousand calls waiting makes others wait no longer than one with a
// few. Flows stand in lanes, which share by weight in the same way.
//
// It knows nothing of limits. Whoever stands at the head of a queue asks for what
// it waits for, and leaves when it has it or gives up; then the next stands there.
// A head whose turn is not at hand yet yields to one that comes and goes before it
// in that order, so that nobody loses a turn by coming a moment after somebody who
// has just begun to wait for his.
// Those who wait for different things stand in different queues and never wait for
// each other.
package fair

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// Queues are the queues of those who wait for things named by keys: a limit and
// the key that it is counted by. A queue exists while somebody stands in it. They
// are safe for concurrent use.
type Queues[K comparable] struct {
	waiting atomic.Int64
	clock   clock.Clock

	mu     sync.Mutex
	config Config
	byKey  map[K]*queue[K]
	flows  map[string]int // calls of each flow, in all queues
}

// New makes queues that live in the clock's time. The config must be valid.
func New[K comparable](c clock.Clock, conf Config) *Queues[K] {
	return &Queues[K]{clock: c, config: conf.WithDefaults(), byKey: make(map[K]*queue[K]), flows: make(map[string]int)}
}

// Set changes the config. Those who wait go on waiting.
func (s *Queues[K]) Set(c Config) {
	s.mu.Lock()
	s.config = c.WithDefaults()
	s.mu.Unlock()
}

// Empty reports whether nobody waits for anything: one atomic load.
func (s *Queues[K]) Empty() bool { return s.waiting.Load() == 0 }

// Busy reports whether anybody waits for the thing, and the cost of those who do,
// heads apart.
func (s *Queues[K]) Busy(k K) (cost time.Duration, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byKey[k]
	if q == nil {
		return 0, false
	}
	for i := range q.lanes {
		cost += time.Duration(q.lanes[i].cost)
	}
	return cost, true
}

// A Spot is a queue and what a call costs there.
type Spot[K comparable] struct {
	Key  K
	Cost time.Duration // how long it takes until as much comes as the call costs; an hour counts as much as more
	Room int           // heads that there may be at once; 0 means 1

	// Steady says that what is waited for comes evenly: whoever has much before it
	// that costs too long cannot go in time, and need not wait to learn that.
	Steady bool
}

// A Call is one that waits.
type Call struct {
	Flow   string
	Lane   int // from 0 to Lanes-1
	Weight int // of the flow; 0 means 1
	Until  time.Duration
	Cost   time.Duration // of where it stands
}

// Enter lets a call stand in a queue. If it says no there is no room, or the call's
// turn could not come in time; the place is the one that it would have had. If it
// says yes, the waiter must Wait until it is a head, and must Leave in any case.
func (s *Queues[K]) Enter(now time.Duration, c Call, at Spot[K]) (*Waiter[K], Place, bool) {
	c.tame(at.Cost)
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.byKey[at.Key]
	full := int(s.waiting.Load()) >= s.config.Longest || s.flows[c.Flow] >= s.config.PerFlow
	if full || q != nil && at.Steady {
		if p, hopeless := s.hope(q, &c, at.Steady); full || hopeless {
			return nil, p, false
		}
	}
	w := &Waiter[K]{all: s, call: c, ready: make(chan struct{}, 1)}
	s.waiting.Add(1)
	s.flows[c.Flow]++
	s.stand(now, w, at)
	return w, Place{}, true
}

func (c *Call) tame(cost time.Duration) {
	c.Cost = min(max(cost, 1), mostCost)
	c.Weight = min(max(c.Weight, 1), MostWeight)
	c.Lane = min(max(c.Lane, 0), Lanes-1)
}

// hope is where a call would stand, and whether there is none for it.
func (s *Queues[K]) hope(q *queue[K], c *Call, steady bool) (p Place, hopeless bool) {
	if q == nil {
		return Place{Place: 1, Waiting: 1}, false
	}
	f := q.lanes[c.Lane].flows[c.Flow]
	before, cost := 0, int64(0)
	if f != nil {
		before, cost = f.n, f.cost
	}
	p = q.place(c, f, before, cost, &s.config.Weights, lookedAt)
	p.Waiting++
	p.Place = min(p.Place, p.Waiting)
	return p, steady && p.Due > 0 && p.Due+p.Ahead+c.Cost > c.Until
}

// stand puts a waiter into a queue, and makes it a head if there is room. A head that
// it goes before is woken, to see that.
func (s *Queues[K]) stand(now time.Duration, w *Waiter[K], at Spot[K]) {
	q := s.byKey[at.Key]
	if q == nil {
		q = &queue[K]{key: at.Key, due: now}
		s.byKey[at.Key] = q
	}
	q.room = max(at.Room, 1)
	w.queue, w.call.Cost = q, min(max(at.Cost, 1), mostCost)
	q.push(w)
	s.dispatch(q)
	if h := q.head(); h != nil && q.overtaken(h) {
		h.signal()
	}
}

// dispatch makes those who come next heads while there is room.
func (s *Queues[K]) dispatch(q *queue[K]) {
	for q.heads < q.room && q.n > 0 {
		w := q.next(&s.config.Weights)
		q.lead(w)
		w.signal()
	}
	if q.n == 0 && q.led == 0 && s.byKey[q.key] == q {
		delete(s.byKey, q.key)
	}
}

// Move has a head stand in another queue. It reports whether it is a head there at
// once, as it is in any case if it must be.
func (s *Queues[K]) Move(now time.Duration, w *Waiter[K], to Spot[K], must bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	from := w.queue
	s.step(w, false)
	w.stays = must
	if s.stand(now, w, to); must && w.state == waits {
		w.queue.promote(w, &s.config.Weights)
	}
	s.dispatch(from)
	return w.state == leads
}

// Leave ends a call's wait. One that went has used its flow's share, one that gave
// up has not.
func (s *Queues[K]) Leave(w *Waiter[K], went bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step(w, went)
	w.state = gone
	s.waiting.Add(-1)
	if s.flows[w.call.Flow]--; s.flows[w.call.Flow] == 0 {
		delete(s.flows, w.call.Flow)
	}
	s.dispatch(w.queue)
}

// step takes a waiter out of its queue.
func (s *Queues[K]) step(w *Waiter[K], went bool) {
	switch w.state {
	case waits:
		w.queue.remove(w)
	case leads:
		w.queue.unlead(w)
		if went {
			w.queue.lanes[w.call.Lane].went(w)
		} else {
			w.queue.refund(w)
		}
	}
}

// Kick wakes every head that sleeps, to ask again: what it was told may hold no
// more.
func (s *Queues[K]) Kick() {
	if s.Empty() {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.byKey {
		for w := q.leading.first; w != nil; w = w.next {
			w.signal()
		}
	}
}
