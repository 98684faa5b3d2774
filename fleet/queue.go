package fleet

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const priorities = 3

// mostShared is how many shared limits a call may have whose callers are combined.
// More than that have a queue of their own each time.
const mostShared = 6

type queueKey [mostShared]*pool

// A queue is the callers of this process who wait for the same limits and keys. One of
// them, the leader, looks after all: it serves those at the front from what is held, asks
// the store for them, and tells those who wait in vain. Who has led hands on to the next.
type queue struct {
	group *Group
	pools []*pool
	lane  uint64

	mu      sync.Mutex
	free    []*waiter
	waiting [priorities][]*waiter // in order
	n       int
	leader  *waiter       // nil if nobody waits
	waker   *clock.Waker  // of the leader
	asking  bool          // an ask is under way
	next    time.Duration // the store is not asked before this instant
	asked   time.Duration // when it was asked last
	there   time.Duration // when there is something again, as the store said last
	why     int           // which limit that is for
	dear    int64         // and what was asked of it
	fails   int           // asks in a row
	used    time.Duration

	enough atomic.Bool // as much has come back as the last ask was short of

	// Of who asks.
	ask    Ask
	first  sending           // when the ask was sent first
	block  [mostShared]int64 // of what it wants besides, to be spent soon
	steps  [mostShared]beginStep
	takes  bool // it takes all that is there of a bucket that begins
	unsure bool // it is not known what became of it
	batch  []seat
	by     expiry        // of what was granted
	lacks  bool          // the last ask was not granted whole
	askIn  time.Duration // how soon to ask again at the latest
	quick  quickest
	came   []int64 // of each pool, when the last ask took along what was pending
	limits []LimitCall
	timer  timeout
}

// A waiter is one call on its way through a queue.
type waiter struct {
	costs    [mostShared]int64
	until    time.Duration // it cannot wait longer than to this instant
	end      time.Duration // nor, for an answer of the store, than to this
	priority limit.Priority
	state    waiterState
	life     uint32 // goes up each time it is used again
	turns    [mostShared]limit.Turn
	by       expiry        // of the turns
	given    time.Duration // when it got them
	late     time.Duration // how late it woke, as the leader, to look after all
	verdict  limit.Verdict
	ready    chan struct{} // wakes it; holds one signal
	wake     func()        // the same, in a clock that is not the system's
	timer    *time.Timer
}

// A seat is a waiter in a batch, as long as it is in the same life.
type seat struct {
	w    *waiter
	life uint32
}

type waiterState uint8

const (
	waits    waiterState = iota
	granting             // it is in a batch that the store is asked for
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
// was granted gives it back and waits anew. late is how much later than its grant the caller
// woke, at worst.
func (q *queue) wait(ctx context.Context, now, until time.Duration, prio limit.Priority, costs []int64, turns []limit.Turn) (v limit.Verdict, late time.Duration, err error) {
	for {
		var got given
		v, got, err = q.stand(ctx, now, until, prio, costs, turns)
		now = q.group.fleet.clock.Now()
		if err != nil || !v.OK {
			return v, late, err
		}
		if late = max(late, got.late, now-got.at); !got.by.passed(now, q.group.fleet.clock) {
			return v, late, nil
		}
		for i, p := range q.pools {
			p.Back(now, turns[i], turns[i].Cost)
		}
		if now >= until {
			return limit.Verdict{Wait: askAgain}, late, nil
		}
	}
}

// given says when a waiter got its turns, before when they must be used, and how late it woke
// as the leader.
type given struct {
	at   time.Duration
	by   expiry
	late time.Duration
}

// stand stands in the queue once.
func (q *queue) stand(ctx context.Context, now, until time.Duration, prio limit.Priority, costs []int64, turns []limit.Turn) (v limit.Verdict, got given, err error) {
	w := q.newWaiter()
	w.until, w.end, w.priority = until, max(until, now+q.grace(now, costs)), min(max(prio, limit.Low), limit.High)
	copy(w.costs[:], costs)
	err = q.pass(ctx, now, w)
	v, got, served := q.leaves(w, turns)
	if served { // even if ctx has ended: what was granted must not be lost
		err = nil
	}
	return v, got, err
}

// leaves lets a waiter go with what it was told, and reports whether somebody else told it.
// If it led, the next one does.
func (q *queue) leaves(w *waiter, turns []limit.Turn) (v limit.Verdict, got given, served bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	v, got, served = w.verdict, given{w.given, w.by, w.late}, w.state == done
	copy(turns, w.turns[:len(turns)])
	q.remove(w)
	w.state = done
	if q.leader == w {
		if q.leader = q.front(); q.leader != nil {
			q.leader.signal()
		}
	}
	q.free = append(q.free, w)
	return v, got, served
}

// grace is how long an answer of the store is waited for whatever the patience of the caller:
// not if the store is known to be away. It notes what is wanted.
func (q *queue) grace(now time.Duration, costs []int64) time.Duration {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	for i, p := range q.pools {
		g.needs(now, p.spec(), costs[i])
	}
	if m, _ := g.standing.mode(now); m == asking || m == waiting && now < g.standing.patient() {
		return g.fleet.o.Timeout
	}
	return 0
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
	w.state, w.verdict, w.wake, w.by, w.late = waits, limit.Verdict{}, nil, noExpiry, 0
	w.life++
	return w
}

func (q *queue) pass(ctx context.Context, now time.Duration, w *waiter) error {
	q.mu.Lock()
	q.used = now
	next, there := q.due()
	there = q.known(w, next, there)
	if q.n >= q.group.fleet.o.Queue || now <= time.Duration(q.group.lone.Load()) && (next > w.end || next > now && there > w.until && q.fails == 0) { // it has just been asked
		w.verdict = q.inVain(now, there)
		q.mu.Unlock()
		return nil
	}
	q.push(w)
	switch {
	case q.leader == nil:
		q.leader = w
	case q.front() == w:
		q.waker.Wake()
	}
	leads := q.leader == w
	q.mu.Unlock()
	if leads {
		return q.lead(ctx, w)
	}
	return q.follow(ctx, w)
}

func (q *queue) push(w *waiter) {
	i := 1 - w.priority // High first
	q.waiting[i] = append(q.waiting[i], w)
	q.n++
	for _, p := range q.pools {
		p.waits.Add(1)
	}
}

func (q *queue) remove(w *waiter) {
	list := q.waiting[1-w.priority]
	for i := range list {
		if list[i] == w {
			q.waiting[1-w.priority] = append(list[:i], list[i+1:]...)
			q.n--
			for _, p := range q.pools {
				p.waits.Add(-1)
			}
			return
		}
	}
}

// follow waits for what the leader brings, or to become the leader.
func (q *queue) follow(ctx context.Context, w *waiter) error {
	for {
		err := q.park(ctx, w, w.end)
		now := q.group.fleet.clock.Now()
		q.mu.Lock()
		ended, leads := q.ended(now, w), q.leader == w
		q.mu.Unlock()
		switch {
		case ended: // even if ctx has ended: what was granted must not be lost
			return nil
		case err != nil:
			return err
		case leads:
			return q.lead(ctx, w)
		}
	}
}

// ended reports whether a waiter's wait is over; the lock is held.
func (q *queue) ended(now time.Duration, w *waiter) bool {
	if w.state == done {
		return true
	}
	if now < w.end {
		return false
	}
	w.verdict = q.inVain(now, q.known(w, now, q.there))
	return true
}

// known is there, but for a waiter who wants less than what that is for: nothing is known of it
// before the next ask. The lock is held.
func (q *queue) known(w *waiter, next, there time.Duration) time.Duration {
	if w.costs[q.why] < q.dear {
		return next
	}
	return there
}

// inVain is what a caller is told who waited in vain, until when something should be there;
// the lock is held.
func (q *queue) inVain(now, there time.Duration) limit.Verdict {
	v := limit.Verdict{Wait: max(askAgain, there-now), Cause: limit.Cause{Why: q.why}}
	q.group.own.Lock()
	defer q.group.own.Unlock()
	if m, _ := q.group.standing.mode(now); !m.uses() && (q.fails > 0 || m != asking && q.blind()) {
		v.Lack, v.Wait = limit.LacksStore, max(v.Wait, q.group.again(now))
	}
	return v
}

// blind reports whether the store does not answer, or what it last said of a limit is not known.
func (q *queue) blind() bool {
	return q.group.failing.Load() || slices.ContainsFunc(q.pools, func(p *pool) bool { return !p.sight().known })
}

// retryStore is what a caller is told to wait for who has to come again when the store
// may be there.
const retryStore = time.Second

// lead looks after everyone until the leader itself has its answer.
func (q *queue) lead(ctx context.Context, w *waiter) error {
	for due := bucket.Never; ; {
		now := q.group.fleet.clock.Now()
		w.late = max(w.late, now-due)
		at := q.serve(now)
		q.mu.Lock()
		ended := q.ended(now, w)
		q.mu.Unlock()
		if ended {
			return nil
		}
		if at = min(at, q.asks(now, w)); at <= now {
			due = bucket.Never
			continue
		}
		due = at
		if err := q.waker.Sleep(ctx, min(at, w.end)-now); err != nil {
			q.mu.Lock()
			defer q.mu.Unlock()
			if w.state == done {
				return nil
			}
			return err
		}
	}
}

// finish ends a waiter's wait; the lock is held.
func (q *queue) finish(w *waiter, v limit.Verdict) {
	q.remove(w)
	w.verdict, w.state = v, done
	w.signal()
	if w == q.leader {
		q.waker.Wake()
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
