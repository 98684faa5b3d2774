package line

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A waiter is a call in a queue. The lock of the queues protects its fields.
type waiter struct {
	call  *Call
	line  *Line
	cost  time.Duration // in this queue
	units int64         // the cost in units
	after func(now time.Duration, ahead int64) time.Duration
	keeps []*Line // queues with a reservation for it
	came  time.Duration
	until time.Duration // until when it waits by the rules
	done  bool
	err   error
	place Place
	wakes *clock.Waker

	flow               *flow
	prev, next         *waiter
	paid, priorityPaid int64 // charged to its flow and its priority when it went
}

// Join makes a call wait for its turn, by priority, flow and weight, at most until Call.Until. A call that has waited
// before returns to its position. The error is nil if the call went. Otherwise it is ErrLate, ErrFull, ErrRefused,
// the error given to Fail, or the cause of ctx's end.
func (l *Line) Join(ctx context.Context, now time.Duration, c *Call) (Place, error) {
	c.bound()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.wait(ctx, now, c, Spot{Cost: mostWeight}) // all calls cost the same, and their price is still not 0 at any weight
}

// wait is Wait with the lock held. The first call of a queue asks for itself. Other calls sleep until the driver ends
// their wait, their time is up, or ctx ends. The lock is free during sleep.
func (l *Line) wait(ctx context.Context, now time.Duration, c *Call, at Spot) (Place, error) {
	s := l.all
	if s.over != nil {
		return Place{}, s.over
	}
	w := s.newWaiter()
	defer s.free(w)
	w.call, w.line, w.came, w.until = c, l, now, c.Until
	w.at(at)
	if l.rules != nil {
		w.until = min(c.Until, now+l.rules.Wait(now, l.waitedFor(now, c), l.goesBefore(now, w)))
	}
	if c.Came == 0 || c.Recheck || l.order.strict { // a call that waits again returns to its position
		if p, err := l.refuses(now, w); err != nil {
			return p, err
		}
	}
	if c.Came == 0 {
		s.came++
		c.Came = s.came
	}
	s.comes(w)
	l.push(now, w)
	if l.rules != nil || l.next(now) == w { // rules: more may go than when the first asked, without a return
		l.kick(now)
	}
	w.line.drives(w)
	for !w.done {
		if w.fetches() { // once even if its time is up: it may learn why
			now = w.line.fetches(ctx, now, w)
		}
		switch {
		case w.done:
		case ctx.Err() != nil: // it ended during the fetch, which serves other calls too
			w.line.leave(w, context.Cause(ctx), allFlows)
		case w.late(now):
			w.line.leave(w, ErrLate, allFlows)
		case w.fetches():
		default:
			now = s.sleep(ctx, w, now)
		}
	}
	return w.place, w.err
}

// fetches reports whether the waiter has to fetch for its queue.
func (w *waiter) fetches() bool { return w.line.driver == w && w.line.fetch != nil }

// mostFree is how many waiters are kept for reuse, so that waiting usually does not allocate.
const mostFree = 64

// newWaiter returns an unused waiter, or a new one.
func (s *Lines) newWaiter() *waiter {
	if last := len(s.unused) - 1; last >= 0 {
		w := s.unused[last]
		s.unused = s.unused[:last]
		return w
	}
	return &waiter{wakes: clock.NewWaker(s.clock)}
}

// free keeps a waiter for reuse. It may receive a wake-up meant for its last use, which is harmless. free also ends
// the wait of a call whose goroutine panics, in a clock or a store.
func (s *Lines) free(w *waiter) {
	if w.flow != nil && !w.done {
		w.line.leave(w, ErrRefused, someOf)
	}
	if len(s.unused) < mostFree && w.call.away != w {
		*w = waiter{wakes: w.wakes}
		s.unused = append(s.unused, w)
	}
}

// refuses returns whether a call must not wait, and the position that it would have had. The error is ErrFull if too
// many calls wait, and ErrLate if its turn cannot come in time.
func (l *Line) refuses(now time.Duration, w *waiter) (Place, error) {
	s := l.all
	full := int(s.waiting.Load()) >= s.config.Longest || s.flows[w.call.Flow] >= s.config.PerFlow
	if !full && (w.after == nil || l.order.n == 0) {
		return Place{}, nil
	}
	p := l.place(w, l.order.priorities[w.call.Priority].flows[w.call.Flow], lookedAt)
	switch {
	case full:
		return p, ErrFull
	case w.after != nil && w.after(now, p.Units) > w.call.Until-now:
		return p, ErrLate
	}
	return p, nil
}

// sleep sleeps until something may have changed for the waiter, and returns the present instant. The lock is held
// before and after.
func (s *Lines) sleep(ctx context.Context, w *waiter, now time.Duration) time.Duration {
	until := w.until
	if w.line.driver == w {
		until = min(until, w.line.again)
	}
	var err error
	s.unlocked(func() {
		err = w.wakes.Sleep(ctx, until-now)
		now = s.clock.Now()
	})
	if err != nil && !w.done {
		w.line.leave(w, err, allFlows)
	}
	switch l := w.line; {
	case w.done:
	case l.driver == w:
		l.serve(now)
	case now >= w.until && now >= l.due: // its turn may be now, and the driver late
		l.kick(now)
	}
	return now
}

// unlocked runs do without the lock, which is held before and after, even if do panics.
func (s *Lines) unlocked(do func()) {
	s.mu.Unlock()
	defer s.mu.Lock()
	do()
}

// late reports whether a waiter's time is up.
func (w *waiter) late(now time.Duration) bool {
	if now < w.until {
		return false
	}
	if l := w.line; l.rules != nil {
		w.until = min(w.call.Until, l.rules.Longer(now, w.came, l.Waiting(), l.goesBefore(now, w)))
	}
	return now >= w.until
}

// goesBefore reports whether calls of a lower priority than the waiter's wait, or began to wait within the last second:
// in an overload they wait briefly, and sometimes none does.
func (l *Line) goesBefore(now time.Duration, w *waiter) bool {
	return l.order.upTo(w.call.Priority) < l.order.n || now < l.recent[w.call.Priority]
}

// at sets the cost of a waiter from a spot.
func (w *waiter) at(s Spot) { w.cost, w.units, w.after = within(s.Cost), s.Units, s.After }

// push adds a waiter at the position that it would have if it had been here since its arrival.
func (l *Line) push(now time.Duration, w *waiter) {
	if l.order.n == 0 {
		l.due, l.again, l.soonest, l.fetch = now, now, end, nil
	}
	for i := w.call.Priority; i < Priorities && l.order.upTo(i) == 0; i++ {
		l.since[i] = now
	}
	for i := range w.call.Priority {
		l.recent[i] = now + time.Second
	}
	l.soonest = min(l.soonest, w.call.Until)
	w.line = l
	if l.order.push(w); w.flow.n == 1 {
		w.flow.since = now
	}
}

// next returns the call whose turn it is; nil if no call waits. If the rules report that the queue is standing, it is
// the newest call, because most older ones will be too late anyway (Maurer: Fail at Scale, ACM Queue 2015).
func (l *Line) next(now time.Duration) *waiter {
	w := l.order.first()
	if l.rules != nil && w != nil && w.next != nil && l.rules.Stands(now, l.waitedFor(now, w.call), l.goesBefore(now, w)) {
		return w.flow.calls.last
	}
	return w
}

// leave ends the wait of a call that does not go. If it was the first, the driver slept for it, and is woken to ask
// for the next. The call held nothing, so nothing is returned.
func (l *Line) leave(w *waiter, err error, flows int) {
	if !l.order.strict {
		w.place = l.place(w, w.flow, flows)
	}
	first := l.order.first() == w
	l.order.remove(w)
	l.all.leaves(w)
	if l.end(w, err); first && l.driver != nil {
		l.driver.wakes.Wake()
	}
}

// end ends the wait of a call that was removed from the order.
func (l *Line) end(w *waiter, err error) {
	w.done, w.err = true, err
	w.wakes.Wake()
	w.drops(end)
	l.handOn(w)
}

// handOn passes on the role of the driver if the waiter is the driver.
func (l *Line) handOn(w *waiter) {
	if l.driver == w {
		l.setDriver(l.order.first())
		if l.driver != nil {
			l.driver.wakes.Wake()
		}
	}
	l.all.tidy(l)
}

// drives makes a waiter the driver if there is none.
func (l *Line) drives(w *waiter) {
	if l.driver == nil && !w.done {
		l.setDriver(w)
	}
}

// setDriver sets the driver, also for goroutines that wake it without the lock; nil if no call waits.
func (l *Line) setDriver(w *waiter) {
	if l.driver = w; w == nil {
		l.waker.Store(nil)
		return
	}
	l.waker.Store(w.wakes)
}
