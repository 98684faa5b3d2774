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

// A queue contains the callers of this process that wait for the same limits and keys. The driver of its line
// serves them. First, it serves callers from blocks. Then it asks the store for the rest, and refuses callers
// whose deadlines are too early. A queue and its state of the store are kept for idleQueue after its last call.
//
// There is a line for each set of leases, unlike the lines of an upstream, which are for each limit. A request
// is all or none for all limits of a call. So one request can serve the calls that lack the same limits. A call
// of two limits in the line of one of them would need its own request.
type queue struct {
	group  *Group
	leases []*lease
	lane   uint64
	line   *line.Line
	step   line.Step // of calls for which there are not enough units

	// State of the store. Instants are by the local clock; 0 is the past.
	mu     sync.Mutex
	free   []*waiter     // for reuse
	asking bool          // a request is under way; there is at most one
	next   time.Duration // no request is sent before this instant
	asked  time.Duration // when the last request was sent
	there  time.Duration // when units are available again, by the latest response
	why    int           // the limit that this is for
	dear   int64         // how many of its units were requested; fewer may be available earlier
	fails  int           // consecutive failed requests
	used   time.Duration // when the last call arrived
	unsure bool          // the effect of the last request is unknown, so it must be repeated

	// enough is set when as many units have returned to this process as the last request lacked. It is atomic,
	// because units may return while mu is held.
	enough atomic.Bool

	// The request under way and its result. Only the goroutine that has set asking uses these fields. mu orders
	// its writes before the next one's reads.
	ask     Ask
	first   sending // when the request was first sent
	costs   []int64 // of one copy
	block   []int64 // the part of Extra to spend soon
	steps   []beginStep
	tally   []int         // the limits with a tally, in the order of their claims
	solo    bool          // the process serves calls from its part, so the grant goes to the standby
	takes   bool          // the request takes all units of a bucket that begins
	calls   int           // the number of calls that it serves
	others  bool          // the last request served several calls, or calls arrived meanwhile
	by      expiry        // of the grant
	lacks   bool          // the last grant was incomplete
	askIn   time.Duration // the longest time until the next request
	quick   quickest
	late    lateAnswers // guarded by mu
	back    []returned  // of each lease, before the last request
	repeats bool        // the next request follows a refused one at once; see returning
	limits  []LimitCall
	timer   timeout
}

// A waiter is one call in a queue. While it is in line, the line's lock guards it.
type waiter struct {
	queue   *queue
	call    line.Call
	costs   []int64       // of each lease
	until   time.Duration // its deadline
	stands  int           // from limit.Fetch
	holds   bool          // from limit.Fetch
	turns   []limit.Turn
	by      expiry        // of the turns
	given   time.Duration // when it got the turns
	asked   time.Duration // when the request for the turns was sent; 0 if no request was made for this call
	late    time.Duration // how late the driver woke to serve the line
	verdict limit.Verdict // the reason of its refusal
	lapses  time.Duration // until when leases are kept for it; 0 if they never were
	idles   time.Duration // until when they are not kept for it again
}

// usual is the usual largest number of shared limits of a call. With more, finding its queue allocates.
const usual = 8

// queue returns the queue of the leases, which are in the order of the call's charges. It creates the queue if
// necessary.
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

// newQueue makes an empty queue.
func (g *Group) newQueue(leases []*lease) *queue {
	n := len(leases)
	q := &queue{
		group: g, leases: append([]*lease(nil), leases...), lane: g.fleet.nextID(),
		back: make([]returned, n), costs: make([]int64, n), block: make([]int64, n), steps: make([]beginStep, n),
		line: line.ByPriority(g.fleet.clock, g.fleet.o.Queue),
	}
	q.step = line.Step{Kind: line.Store, Fetch: q.looksAfter}
	return q
}

// wait waits until the store has granted the costs, or cannot do so before f.Until. If the verdict is OK, it
// sets the turns of f.Wants. A call that wakes too late to use its grant returns the units and waits again.
//
// wait sets f.Now to the instant of that check and reads no clock after it, since the call goes by it. It sets
// f.Late to the longest time between a grant and its use.
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
		if f.Now >= max(f.Until, came+longestGrace) { // the limit is not the cause
			return limit.Verdict{Wait: askAgain, Cause: limit.Cause{Lack: limit.LacksStore}}, nil
		}
	}
}

// given is when a waiter got its turns, when the request for them was sent, when they expire, and how late the
// driver woke.
type given struct {
	at, asked time.Duration
	by        expiry
	late      time.Duration
}

// stand waits in line once. The verdict is OK if the call got all units that it lacks; got contains their
// expiry. err is the cause of ctx's end, and then no units are held. A call that got its grant as ctx ended has
// an OK verdict.
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

// joins waits in line. The call is counted meanwhile, even if the store's client panics.
func (q *queue) joins(ctx context.Context, now time.Duration, w *waiter) error {
	q.counts(1)
	defer q.counts(-1)
	_, err := q.line.Join(ctx, now, &w.call)
	return err
}

// counts adds n to the waiting calls of each lease.
func (q *queue) counts(n int32) {
	for _, p := range q.leases {
		p.waits.Add(n)
	}
}

// grace returns how long a call waits for a response even if its deadline is earlier: until the process would
// use its part. It is 0 if the store is known to be unavailable. So a limit never refuses a call only because
// the store is late. grace also records the demand.
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

// longestGrace is the longest such wait. firstGrace is the same before the first response of the store: three
// round trips of 150ms.
const (
	longestGrace = time.Second
	firstGrace   = 450 * time.Millisecond
)

// newWaiter reuses a waiter of an earlier call, so that waiting does not allocate.
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

// leaves keeps a waiter that has left the line for reuse. The line no longer refers to it.
func (q *queue) leaves(w *waiter) {
	if w.lapses > 0 {
		q.frees(w)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	*w = waiter{queue: q, costs: w.costs, turns: w.turns}
	q.free = append(q.free, w)
}

// knows returns the refusal of a call that cannot succeed, because the store was just asked or too many calls
// precede it.
func (q *queue) knows(now time.Duration, w *waiter) (v limit.Verdict, vain bool) {
	q.mu.Lock()
	why := q.why
	q.mu.Unlock()
	ahead := q.ahead(w, why) // takes the line's lock, which precedes this one in the lock order
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used = now
	next, there := q.due(w.costs[q.why])
	if next == 0 && ahead > 0 {
		next = q.next // it waits for the preceding calls
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

// elsewhere reports whether the call waits in the line of another limit, and so must not wait here for this
// one. A call that holds units of limits of this process waits here for short times. Otherwise it would take
// and lose them repeatedly.
func (w *waiter) elsewhere(why int, wait time.Duration) bool {
	if w.holds || w.stands > len(w.queue.leases) {
		return wait >= tooLong
	}
	return w.stands > 0 && w.stands != why+1
}

// tooLong is the longest time that a call waits for the store while it holds units that other calls wait for.
const tooLong = 100 * time.Millisecond

// tooLate returns the refusal of a call whose deadline has passed, or for which there was no room.
func (q *queue) tooLate(w *waiter) limit.Verdict {
	now := q.group.fleet.clock.Now()
	q.mu.Lock()
	why := q.why
	q.mu.Unlock()
	ahead := q.leases[why].after(q.ahead(w, why))
	q.mu.Lock()
	defer q.mu.Unlock()
	v := q.inVain(now, later(max(now, q.known(w, now, q.there)), ahead))
	if q.asking && now-q.asked >= q.group.fleet.o.Timeout { // the store is late, and the limit is not the cause
		v.Lack = limit.LacksStore
	}
	return v
}

// ahead returns how many units of a limit the calls before w need.
func (q *queue) ahead(w *waiter, why int) int64 {
	return q.line.Before(&w.call, func(a line.Asker) int64 { return a.(*waiter).costs[why] })
}

// Ask implements line.Asker for the first waiter: it takes units from blocks, all or none. If there are not
// enough, the driver serves the line. The line is locked. since is earlier than now by how late the driver
// woke.
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

// looksAfter serves the waiting calls that could not take from blocks. Without the store, it refuses calls that
// cannot succeed. With the store, it sends a request if one is due. It returns when it must run again. The
// line's driver calls it with no lock held. driver is the driver's own call, whose deadline may have passed.
func (q *queue) looksAfter(ctx context.Context, now time.Duration, driver *line.Call) time.Duration {
	lone := time.Duration(q.group.lone.Load())
	at, over := later(lone, 1), false // the process uses its part after that
	if now > lone {
		at, over = q.refuseAlone(now, driver.Asker)
	}
	if over || now >= driver.Until { // another call becomes the driver
		return now
	}
	return min(at, q.asks(ctx, now, driver.Until))
}

// known returns when units are available for a waiter. For a waiter that needs less than the refused cost, it
// is the time of the next request, which will show more. A waiter that needs more also waits for the
// difference. mu is held.
func (q *queue) known(w *waiter, next, there time.Duration) time.Duration {
	cost := w.costs[q.why]
	if cost < q.dear {
		return next
	}
	return later(there, q.leases[q.why].after(cost-q.dear))
}

// inVain returns the refusal of a call for which units should be available at there. mu is held.
func (q *queue) inVain(now, there time.Duration) limit.Verdict {
	v := limit.Verdict{Wait: max(askAgain, there-now), Cause: limit.Cause{Why: q.why}}
	q.group.own.Lock()
	defer q.group.own.Unlock()
	if m, _ := q.group.standing.mode(now); !m.uses() && (q.fails > 0 || m != asking && q.blind()) {
		v.Lack, v.Wait = limit.LacksStore, max(v.Wait, q.group.again(now))
	}
	return v
}

// blind reports whether the store does not respond, or has not yet reported the state of a limit.
func (q *queue) blind() bool {
	return q.group.failing.Load() || slices.ContainsFunc(q.leases, func(p *lease) bool { return !p.sight().known })
}

// retryStore is the shortest wait that a caller gets if the store is unavailable.
const retryStore = time.Second

// paused returns the remaining time of a pause of one of the limits. The store does not know about pauses, so
// no request is sent meanwhile.
func (q *queue) paused(now time.Duration) (wait time.Duration, why int) {
	for i, p := range q.leases {
		if left := time.Duration(p.paused.Load()) - now; left > wait {
			wait, why = left, i
		}
	}
	return wait, why
}
