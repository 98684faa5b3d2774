package limit

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

// A Priority says who of those that wait in this process goes first. Within one
// they go in the order in which they came.
type Priority int8

const (
	Low    Priority = -1
	Normal Priority = 0
	High   Priority = 1
)

const priorities = 3

// mostShared is how many shared limits a call may have whose callers are combined.
// More than that have a queue of their own each time.
const mostShared = 6

type queueKey [mostShared]*pool

// A queue is the callers of this process who wait for the same limits and keys. One
// of them, the leader, asks the store for all; who has led hands on to the next.
type queue struct {
	group *Group
	pools []*pool
	lane  uint64

	mu       sync.Mutex
	free     []*waiter
	waiting  [priorities][]*waiter // in order; who has left is nil
	n        int
	led      bool          // somebody is the leader
	next     time.Duration // the store is not asked before this instant
	asked    time.Duration // when it was asked last
	there    time.Duration // when there is something again, as the store said last
	why      int           // and which limit that is for
	used     time.Duration
	resumeAt time.Duration // until when it goes on alone though the store is back

	waker  *clock.Waker // of the leader
	enough atomic.Bool  // as much has come back as the last ask was short of

	// The leader's own.
	ask    Ask
	batch  []*waiter
	by     expiry        // of what was granted
	lacks  bool          // the last ask was not granted whole
	askIn  time.Duration // how soon to ask again at the latest
	came   []int64       // of each pool, when the last ask took along what was pending
	limits []LimitCall
	timer  timeout
}

// A waiter is one call on its way through a queue.
type waiter struct {
	costs    [mostShared]int64
	until    time.Duration // it cannot wait longer than to this instant
	priority Priority
	state    waiterState
	leaving  bool // its context has ended while it was granting
	turns    [mostShared]Turn
	by       expiry // of the turns
	verdict  Verdict
	ready    chan struct{} // wakes it; holds one signal
	wake     func()        // the same, in a clock that is not the system's
}

type waiterState uint8

const (
	waits waiterState = iota
	leads
	granting // it is in a batch that the store is asked for
	done
)

// queue is the queue of the pools.
func (g *Group) queue(pools []*pool) *queue {
	var k queueKey
	if copy(k[:], pools) < len(pools) {
		return g.newQueue(pools)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[k]
	if q == nil {
		q = g.newQueue(pools)
		g.queues[k] = q
	}
	return q
}

func (g *Group) newQueue(pools []*pool) *queue {
	return &queue{group: g, pools: append([]*pool(nil), pools...), lane: g.fleet.nextID(), came: make([]int64, len(pools)), waker: clock.NewWaker(g.fleet.clock)}
}

// wait waits until the store has granted the costs, or there is no hope of it before
// until. If the verdict is yes, turns are filled in. Who wakes too late to use what
// was granted gives it back and waits anew.
func (q *queue) wait(ctx context.Context, now, until time.Duration, prio Priority, costs []int64, turns []Turn) (Verdict, error) {
	for {
		v, by, err := q.stand(ctx, now, until, prio, costs, turns)
		if now = q.group.fleet.clock.Now(); err != nil || !v.OK || !by.passed(now, q.group.fleet.clock) {
			return v, err
		}
		for i, p := range q.pools {
			p.back(now, turns[i], turns[i].Cost)
		}
		if now >= until {
			return Verdict{Wait: askAgain}, nil
		}
	}
}

// stand stands in the queue once. What was granted must be used before by.
func (q *queue) stand(ctx context.Context, now, until time.Duration, prio Priority, costs []int64, turns []Turn) (v Verdict, by expiry, err error) {
	w := q.newWaiter()
	w.until, w.priority = until, min(max(prio, Low), High)
	copy(w.costs[:], costs)
	err = q.pass(ctx, now, w)
	v, by = w.verdict, w.by
	copy(turns, w.turns[:len(turns)])
	q.mu.Lock()
	q.free = append(q.free, w)
	q.mu.Unlock()
	return v, by, err
}

// newWaiter uses one again that has left, so that waiting allocates nothing.
func (q *queue) newWaiter() *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.free) - 1
	if last < 0 {
		return &waiter{ready: make(chan struct{}, 1)}
	}
	w := q.free[last]
	q.free = q.free[:last]
	select {
	case <-w.ready: // it left before it heard
	default:
	}
	w.state, w.leaving, w.verdict, w.wake, w.by = waits, false, Verdict{}, nil, noExpiry
	return w
}

func (q *queue) pass(ctx context.Context, now time.Duration, w *waiter) error {
	q.mu.Lock()
	q.used = now
	next, there := q.due()
	switch {
	case q.n >= q.group.fleet.o.Queue:
		w.verdict = Verdict{Wait: max(time.Millisecond, q.there-now), Why: q.why}
		q.mu.Unlock()
		return nil
	case next > now && there > w.until: // it has just been asked
		w.verdict = Verdict{Wait: there - now, Why: q.why}
		q.mu.Unlock()
		return nil
	}
	q.push(w)
	if !q.led {
		q.led, w.state = true, leads
		q.mu.Unlock()
		return q.lead(ctx, w)
	}
	q.mu.Unlock()
	return q.follow(ctx, w)
}

func (q *queue) push(w *waiter) {
	i := 1 - w.priority // High first
	q.waiting[i] = append(q.waiting[i], w)
	q.n++
}

// follow waits for what the leader brings, or to become the leader.
func (q *queue) follow(ctx context.Context, w *waiter) error {
	err := q.park(ctx, w)
	q.mu.Lock()
	switch w.state {
	case done:
		q.mu.Unlock()
		return nil // even if ctx has ended: what was granted must not be lost
	case leads:
		q.mu.Unlock()
		if err != nil {
			q.handOn(w)
			return err
		}
		return q.lead(ctx, w)
	case granting: // ctx has ended, but the store is being asked for it
		w.leaving = true
		q.mu.Unlock()
		_ = q.park(context.WithoutCancel(ctx), w)
		if w.verdict.OK {
			return nil
		}
		return err
	}
	q.remove(w)
	q.mu.Unlock()
	return err
}

// park sleeps until the waiter is woken or ctx ends.
func (q *queue) park(ctx context.Context, w *waiter) error {
	c := q.group.fleet.clock
	if c == clock.System {
		select {
		case <-w.ready:
			return nil
		case <-ctx.Done():
			select {
			case <-w.ready: // both: what was brought counts
				return nil
			default:
				return context.Cause(ctx)
			}
		}
	}
	// A virtual clock knows only its own contexts, and runs one goroutine at a time.
	inner, cancel := c.WithTimeout(ctx, math.MaxInt64/4, nil)
	defer cancel()
	q.mu.Lock()
	woken := w.state == done || w.state == leads
	w.wake = cancel
	q.mu.Unlock()
	if !woken {
		_ = c.Sleep(inner, math.MaxInt64/4)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// signal wakes a waiter; the lock is held.
func (w *waiter) signal() {
	if w.wake != nil {
		w.wake()
		return
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}

func (q *queue) remove(w *waiter) {
	list := q.waiting[1-w.priority]
	for i := range list {
		if list[i] == w {
			q.waiting[1-w.priority] = append(list[:i], list[i+1:]...)
			q.n--
			return
		}
	}
}

// handOn makes the next who waits the leader. w, the present one, leaves the queue
// if it still stands there.
func (q *queue) handOn(w *waiter) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.remove(w)
	for i := range q.waiting {
		if len(q.waiting[i]) > 0 {
			q.waiting[i][0].state = leads
			q.waiting[i][0].signal()
			return
		}
	}
	q.led = false
}

// lead asks the store for everyone until the leader itself has its answer.
func (q *queue) lead(ctx context.Context, w *waiter) error {
	c := q.group.fleet.clock
	for {
		now := c.Now()
		q.local(now)
		if w.state == done {
			q.handOn(w)
			return nil
		}
		if d := q.rest(now); d > 0 {
			if err := q.waker.Sleep(ctx, d); err != nil {
				q.handOn(w)
				return err
			}
			continue
		}
		if wait, why := q.paused(now); wait > 0 {
			q.postpone(now, wait, 0, why)
			continue
		}
		if q.group.fleet.Away() || now < q.resumeAt {
			q.alone(c.Now())
			continue
		}
		q.fetch(c.Now())
	}
}

// rest is how long the store is not to be asked.
func (q *queue) rest(now time.Duration) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	next, _ := q.due()
	return next - now
}

// finish ends a waiter's wait; the lock is held. The leader is awake anyway.
func (w *waiter) finish(v Verdict) {
	leading := w.state == leads
	w.verdict, w.state = v, done
	if !leading {
		w.signal()
	}
}

// local serves those at the front from what is held already.
func (q *queue) local(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for w := q.front(); w != nil && q.fromPools(now, w); w = q.front() {
		q.remove(w)
		w.finish(Verdict{OK: true})
	}
}

// paused is how long a pause of one of the limits still lasts: the store, which knows of
// none, is not asked meanwhile.
func (q *queue) paused(now time.Duration) (wait time.Duration, why int) {
	for i, p := range q.pools {
		if left := time.Duration(p.paused.Load()) - now; left > wait {
			wait, why = left, i
		}
	}
	return wait, why
}

func (q *queue) front() *waiter {
	for i := range q.waiting {
		if len(q.waiting[i]) > 0 {
			return q.waiting[i][0]
		}
	}
	return nil
}

// fromPools takes the costs of a waiter from what is held, all or none.
func (q *queue) fromPools(now time.Duration, w *waiter) bool {
	w.by = noExpiry
	for i, p := range q.pools {
		w.by = w.by.first(p.lasts(now))
		t, _, ok := p.take(now, w.costs[i], 0)
		if !ok {
			for k := range i {
				q.pools[k].again(w.turns[k])
			}
			return false
		}
		w.turns[i] = t
	}
	return true
}

// again puts units that were taken a moment ago back where they were.
func (p *pool) again(t Turn) {
	for i := range p.blocks {
		b := p.blocks[i].Load()
		if b == nil || t.Cost == 0 || b.mark.At != t.Low {
			continue
		}
		left := b.left.Load()
		if b.turn(left, t.Cost) == t.Turn && b.left.CompareAndSwap(left, left+t.Cost) {
			return
		}
	}
	p.back(0, t, t.Cost)
}

// refuse ends the wait of everyone who cannot wait as long as the limit why asks
// for; ahead of each stand those before it.
func (q *queue) refuse(now, wait time.Duration, why int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	var ahead int64
	for i := range q.waiting {
		list := append([]*waiter(nil), q.waiting[i]...)
		for _, w := range list {
			own := wait + q.pools[why].after(ahead)
			if now+own > w.until {
				q.remove(w)
				w.finish(Verdict{Wait: own, Why: why})
				continue
			}
			ahead += w.costs[why]
		}
	}
}

// after is how long it takes at least until n units have come.
func (p *pool) after(n int64) time.Duration {
	s := p.spec.Load()
	if s.limit.Shape == Fixed || n <= 0 {
		return 0
	}
	return time.Duration(min(float64(n)/s.limit.PerSecond()*float64(time.Second), float64(bucket.Never/4)))
}
