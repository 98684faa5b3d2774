package fleet

import (
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
)

// A queue is the callers of this process who wait for the same limits and keys, in a line whose driver looks
// after all: those go first that can from what is held, then it asks the store for the others, and tells those
// who wait in vain. A queue stays for idleQueue after its last call, with what it knows of the store.
//
// Why a line for each set of leases, and not one for each limit, as an upstream has them: an ask is all or none, of all limits
// of a call, and so those can be asked for together who lack the same. A call of two limits in the line of one of them
// would be asked for alone.
type queue struct {
	group  *Group
	leases []*lease
	lane   uint64
	line   *line.Line
	step   line.Step // of those for whom there is not enough

	// What is known of the store. Instants are the clock's; 0 is the past.
	mu     sync.Mutex
	free   []*waiter     // to be used again
	asking bool          // an ask is under way: there is never more than one
	next   time.Duration // the store is not asked before this instant
	asked  time.Duration // when it was asked last
	there  time.Duration // when there is something again, as the store said last
	why    int           // which of the limits that is for
	dear   int64         // and how many units were asked of it: for fewer it may be sooner
	fails  int           // asks in a row that failed
	used   time.Duration // when a call came last

	// enough is that as much has come back to this process as the last ask was short of. It is set under a lease's lock,
	// and so by itself.
	enough atomic.Bool

	// The ask under way, and what its answer brings. Only the goroutine that has set asking uses these; the next one sees
	// them by mu.
	ask    Ask
	first  sending // when the ask was sent first
	costs  []int64 // of one copy
	block  []int64 // of what it wants besides, to be spent soon
	steps  []beginStep
	solo   bool          // it is of a process that goes on by itself: what is granted stands by
	takes  bool          // it takes all that is there of a bucket that begins
	unsure bool          // it is not known what became of it
	calls  int           // whom it is for
	others bool          // the last one was for several, or others came meanwhile
	by     expiry        // of what was granted
	lacks  bool          // the last ask was not granted whole
	askIn  time.Duration // how soon to ask again at the latest
	quick  quickest
	late   lateAnswers // guarded by mu
	came   []int64     // of each lease, when the last ask took along what was pending
	limits []LimitCall
	timer  timeout
}

// A waiter is one call on its way through a queue. Once it is in line, the line's lock guards it.
type waiter struct {
	queue   *queue
	call    line.Call
	costs   []int64       // of each lease
	until   time.Duration // it cannot wait longer than to this instant
	stands  int           // limit.Fetch's
	holds   bool          // limit.Fetch's
	turns   []limit.Turn
	by      expiry        // of the turns
	given   time.Duration // when it got them
	asked   time.Duration // when the store was asked for them; 0 if they are not of an ask for this call
	late    time.Duration // how late the driver woke, to look after all
	verdict limit.Verdict // why it was refused
	lapses  time.Duration // until when leases are kept for it at most; 0 before they are
	idles   time.Duration // until when they are not kept for it again
}

// usual is how many shared limits a call has as a rule: with more, to look for its queue allocates.
const usual = 8

// queue is the queue of the leases, which are in the order of the call's charges.
func (g *Group) queue(leases []*lease) *queue {
	var b [8 * usual]byte
	k := b[:0]
	for _, p := range leases {
		k = binary.LittleEndian.AppendUint64(k, p.id)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queues[string(k)]
	if q == nil {
		q = g.newQueue(leases)
		g.queues[string(k)] = q
	}
	return q
}

// newQueue makes a queue in which nobody waits.
func (g *Group) newQueue(leases []*lease) *queue {
	n := len(leases)
	q := &queue{
		group: g, leases: append([]*lease(nil), leases...), lane: g.fleet.nextID(),
		came: make([]int64, n), costs: make([]int64, n), block: make([]int64, n), steps: make([]beginStep, n),
		line: line.ByPriority(g.fleet.clock, g.fleet.o.Queue),
	}
	q.step = line.Step{Kind: line.Store, Fetch: q.looksAfter}
	return q
}

// wait waits until the store has granted the costs, or there is no hope of it before
// f.Until. If the verdict is yes, the turns of f.Wants are filled in. A call that wakes too late to use what
// was granted gives it back and waits anew. f.Now becomes the instant by which that was judged, and no
// clock is read after it: a call goes by it. f.Late is how much later than its grant the call
// woke, at worst.
func (q *queue) wait(ctx context.Context, f *limit.Fetch) (v limit.Verdict, err error) {
	came := f.Now
	for {
		var got given
		v, got, err = q.stand(ctx, f)
		f.Now = q.group.fleet.clock.Now()
		if err != nil || !v.OK {
			return v, err
		}
		if f.Late = max(f.Late, got.late, f.Now-got.at); !got.by.passed(f.Now, q.group.fleet.clock) {
			return v, nil
		}
		for i, p := range q.leases {
			p.Back(f.Now, f.Wants[i].Turn, f.Wants[i].Cost)
		}
		if got.asked > 0 {
			q.noteLate(got.asked, f.Now, false)
		}
		if f.Now >= max(f.Until, came+longestGrace) { // the limit is not why
			return limit.Verdict{Wait: askAgain, Cause: limit.Cause{Lack: limit.LacksStore}}, nil
		}
	}
}

// given says when a waiter got its turns, when the store was asked for them, before when they must be used, and how late
// the driver woke to give them.
type given struct {
	at, asked time.Duration
	by        expiry
	late      time.Duration
}

// stand stands in line once. The verdict is yes if the call got all that it lacks; got says by when it must go. An error is
// the cause of ctx's end, and then nothing is held: who was granted something as ctx ended has a yes.
func (q *queue) stand(ctx context.Context, f *limit.Fetch) (v limit.Verdict, got given, err error) {
	w, now := q.newWaiter(), f.Now
	defer q.leaves(w)
	w.until, w.stands, w.holds = f.Until, f.Stands, f.Holds
	for i := range f.Wants {
		w.costs[i] = f.Wants[i].Cost
	}
	w.call = line.Call{
		Asker: w, Priority: int(limit.High - min(max(f.Priority, limit.Low), limit.High)), Until: max(f.Until, now+q.grace(now, w.costs)), Came: f.Came,
	}
	if v, vain := q.knows(now, w); vain {
		return v, got, nil
	}
	err = q.joins(ctx, now, w)
	switch {
	case err == nil:
		for i := range f.Wants {
			f.Wants[i].Turn = w.turns[i]
		}
		return limit.Verdict{OK: true}, given{w.given, w.asked, w.by, w.late}, nil
	case errors.Is(err, line.ErrRefused):
		return w.verdict, got, nil
	case errors.Is(err, line.ErrLate), errors.Is(err, line.ErrFull):
		return q.tooLate(w), got, nil
	}
	return v, got, err
}

// joins waits in line, and is counted for so long, even if the store's client panics.
func (q *queue) joins(ctx context.Context, now time.Duration, w *waiter) error {
	q.counts(1)
	defer q.counts(-1)
	_, err := q.line.Join(ctx, now, &w.call)
	return err
}

// counts counts a call that waits for each of the limits.
func (q *queue) counts(n int32) {
	for _, p := range q.leases {
		p.waits.Add(n)
	}
}

// grace is how long an answer of the store is waited for whatever the patience of the caller: until the process would serve
// calls by itself, and not if the store is known to be away. A limit refuses no call because the store is late. It notes
// what is wanted.
func (q *queue) grace(now time.Duration, costs []int64) time.Duration {
	g := q.group
	g.own.Lock()
	defer g.own.Unlock()
	for _, p := range q.leases {
		p.fit(now)
	}
	g.needs(now, q.leases, costs)
	switch m, _ := g.standing.mode(now); {
	case m == asking:
		return max(g.fleet.o.Timeout, min(longestGrace, g.standing.patient()-now))
	case m == waiting && now < g.standing.patient():
		return min(g.timeout(), max(g.fleet.o.Timeout, firstGrace))
	}
	return 0
}

// longestGrace is how long a call waits at most for an answer of the store for which it has no patience. firstGrace is the
// same while the store has answered nothing yet: three round trips of 150ms.
const (
	longestGrace = time.Second
	firstGrace   = 450 * time.Millisecond
)

// newWaiter uses one again that has left, so that waiting allocates nothing.
func (q *queue) newWaiter() *waiter {
	q.mu.Lock()
	defer q.mu.Unlock()
	last := len(q.free) - 1
	if last < 0 {
		n := len(q.leases)
		return &waiter{queue: q, costs: make([]int64, n), turns: make([]limit.Turn, n)}
	}
	w := q.free[last]
	q.free = q.free[:last]
	return w
}

// leaves keeps a waiter that is in line no more, to be used again. Nobody else has it then: the line asks
// nobody who has left.
func (q *queue) leaves(w *waiter) {
	if w.lapses > 0 {
		q.frees(w)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*w = waiter{queue: q, costs: w.costs, turns: w.turns}
	q.free = append(q.free, w)
}

// knows is what a call is told at once that would wait in vain: the store has just been asked, or so many come before it.
func (q *queue) knows(now time.Duration, w *waiter) (v limit.Verdict, vain bool) {
	q.mu.Lock()
	why := q.why
	q.mu.Unlock()
	ahead := q.ahead(w, why) // takes the line's lock, which comes before this one
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = now
	next, there := q.due(w.costs[q.why])
	if next == 0 && ahead > 0 {
		next = q.next // it waits for those before it
	}
	there = q.known(w, next, there)
	least, likely := there, there
	if q.why == why {
		least, likely = later(there, q.leases[why].least(ahead)), later(there, q.leases[why].after(ahead))
	}
	if now <= time.Duration(q.group.lone.Load()) && (next > w.call.Until || next > now && least > w.until && q.fails == 0) {
		return q.inVain(now, likely), true
	}
	if next > now && q.there > now && q.fails == 0 && w.costs[q.why] >= q.dear && w.elsewhere(q.why, q.there-now) {
		return q.inVain(now, q.there), true
	}
	return v, false
}

// elsewhere reports whether the call stands in the line of another limit than that, and so is not to wait here for it. Where
// it holds units of limits of this process it waits for what comes soon, whatever its line: it would take and lose them each time.
func (w *waiter) elsewhere(why int, wait time.Duration) bool {
	if w.holds || w.stands > len(w.queue.leases) {
		return wait >= tooLong
	}
	return w.stands > 0 && w.stands != why+1
}

// tooLong is for how long at most a call waits for the store while it holds what others wait for.
const tooLong = 100 * time.Millisecond

// tooLate is what a call is told that has waited in vain, or for which there was no room.
func (q *queue) tooLate(w *waiter) limit.Verdict {
	now := q.group.fleet.clock.Now()
	q.mu.Lock()
	why := q.why
	q.mu.Unlock()
	ahead := q.leases[why].after(q.ahead(w, why))
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.inVain(now, later(max(now, q.known(w, now, q.there)), ahead))
	if q.asking && now-q.asked >= q.group.fleet.o.Timeout { // the store is late, and the limit is not why
		v.Lack = limit.LacksStore
	}
	return v
}

// ahead is how many units of a limit those want who go before a call.
func (q *queue) ahead(w *waiter, why int) int64 {
	return q.line.Before(&w.call, func(a line.Asker) int64 { return a.(*waiter).costs[why] })
}

// Ask is the line's, for the waiter that is first: it takes from what is held, all or none. One for which there is not enough
// has the driver look after all. The line is locked, and since is earlier than now by how late the driver woke.
func (w *waiter) Ask(now, since time.Duration) line.Step {
	w.late = max(w.late, now-since)
	if why, to, ok := w.yields(now); ok {
		return w.leave(now, why, to)
	}
	if !w.queue.fromLeases(now, w) {
		return w.queue.step
	}
	w.given = now
	return line.Step{Kind: line.Go}
}

// looksAfter looks after those who wait and have not got what they asked for: without the store it ends the wait of those that
// would wait in vain, and with it, it asks when it is time to. It returns at which instant it has to again. The line's driver
// calls it, with no lock held; driver is its own call, whose time may be over.
func (q *queue) looksAfter(ctx context.Context, now time.Duration, driver *line.Call) time.Duration {
	lone := time.Duration(q.group.lone.Load())
	at, over := later(lone, 1), false // then it serves by itself
	if now > lone {
		at, over = q.refuseAlone(now, driver.Asker)
	}
	if over || now >= driver.Until { // the next one drives
		return now
	}
	return min(at, q.asks(ctx, now, driver.Until))
}

// known is there, but for a waiter who wants less than what that is for: nothing is known of it
// before the next ask. One who wants more waits for the rest, too. The lock is held.
func (q *queue) known(w *waiter, next, there time.Duration) time.Duration {
	cost := w.costs[q.why]
	if cost < q.dear {
		return next
	}
	return later(there, q.leases[q.why].after(cost-q.dear))
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
	return q.group.failing.Load() || slices.ContainsFunc(q.leases, func(p *lease) bool { return !p.sight().known })
}

// retryStore is what a caller is told to wait for who has to come again when the store
// may be there.
const retryStore = time.Second

// paused is how long a pause of one of the limits still lasts: the store, which knows of
// none, is not asked meanwhile.
func (q *queue) paused(now time.Duration) (wait time.Duration, why int) {
	for i, p := range q.leases {
		if left := time.Duration(p.paused.Load()) - now; left > wait {
			wait, why = left, i
		}
	}
	return wait, why
}
