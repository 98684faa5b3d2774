package line

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A waiter is a call in a line. Its fields are behind the lock of the lines.
type waiter struct {
	call  *Call
	line  *Line
	cost  time.Duration // there
	units int64         // the same in units
	after func(now time.Duration, ahead int64) time.Duration
	keeps []*Line // those that keep something for it
	came  time.Duration
	until time.Duration // so long it waits by the rules
	done  bool
	err   error
	place Place
	wakes *clock.Waker

	flow               *flow
	prev, next         *waiter
	paid, priorityPaid int64 // by its flow and its priority, when it went
}

// Join has a call wait for its turn, in its priority, flow and weight, until Call.Until at most. A call that has waited before
// returns to its place. The error is nil if the call went, ErrLate, ErrFull, ErrRefused, the error given to Fail, or the cause
// of ctx's end.
func (l *Line) Join(ctx context.Context, now time.Duration, c *Call) (Place, error) {
	c.bound()
	l.all.mu.Lock()
	defer l.all.mu.Unlock()
	return l.wait(ctx, now, c, Spot{Cost: mostWeight}) // all calls cost the same, and their price is still not 0 at any weight
}

// wait is Wait with the lock held. A call that is first asks on its own behalf; others sleep until the
// driver ends their wait, their time is up, or ctx ends. Nothing is held while it sleeps.
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
		w.until = min(c.Until, now+l.rules.Wait(l.waited(now, c.Priority)))
	}
	if c.Came == 0 || c.Recheck || l.order.strict { // one that comes again has its place
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
	if l.rules != nil || l.next(now) == w { // rules: more may go than when the first asked, though nobody gave anything back
		l.kick(now)
	}
	w.line.drives(w)
	for !w.done {
		if w.fetches() { // once even if its time is up: it may learn why
			now = w.line.fetches(ctx, now, w)
		}
		switch {
		case w.done:
		case ctx.Err() != nil: // while it fetched, for which others take over
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

// fetches reports whether the waiter has to fetch for its line.
func (w *waiter) fetches() bool { return w.line.driver == w && w.line.fetch != nil }

// mostFree is how many waiters are kept to be used again, so that those who wait in turn allocate nothing.
const mostFree = 64

// newWaiter is one that was used before, or a new one.
func (s *Lines) newWaiter() *waiter {
	if last := len(s.unused) - 1; last >= 0 {
		w := s.unused[last]
		s.unused = s.unused[:last]
		return w
	}
	return &waiter{wakes: clock.NewWaker(s.clock)}
}

// free keeps a waiter that has left, to be used again: a wake-up that it has not heard is one too many then.
// One whose goroutine panics, in a clock or a store, leaves by this.
func (s *Lines) free(w *waiter) {
	if w.flow != nil && !w.done {
		w.line.leave(w, ErrRefused, someOf)
	}
	if len(s.unused) < mostFree && w.call.away != w {
		*w = waiter{wakes: w.wakes}
		s.unused = append(s.unused, w)
	}
}

// refuses says whether a call need not wait, and where it would have stood: ErrFull where as many wait as
// may, ErrLate where its turn cannot come in time.
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

// sleep sleeps until something may have changed for the waiter, and says what time it
// is then. The lock is held before and after.
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

// unlocked does what must not be done under the lock, which is held before and after, even if do panics.
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
		w.until = min(w.call.Until, l.rules.Longer(now, w.came, l.Waiting(), l.goesBefore(w)))
	}
	return now >= w.until
}

// goesBefore reports whether some of those that wait are of a lower priority than the waiter.
func (l *Line) goesBefore(w *waiter) bool { return l.order.upTo(w.call.Priority) < l.order.n }

// at has a waiter wait at a spot.
func (w *waiter) at(s Spot) { w.cost, w.units, w.after = within(s.Cost), s.Units, s.After }

// push puts a waiter where it would stand had it been here since it came.
func (l *Line) push(now time.Duration, w *waiter) {
	if l.order.n == 0 {
		l.due, l.again, l.soonest, l.fetch = now, now, end, nil
	}
	for i := w.call.Priority; i < Priorities && l.order.upTo(i) == 0; i++ {
		l.since[i] = now
	}
	l.soonest = min(l.soonest, w.call.Until)
	w.line = l
	l.order.push(w)
}

// next is whose turn it is; nil if nobody waits. Where the rules say that the queue stands it is the
// newest: most of those that have waited for longer will be too late whoever goes (Maurer: Fail at Scale,
// ACM Queue 2015).
func (l *Line) next(now time.Duration) *waiter {
	w := l.order.first()
	if l.rules != nil && w != nil && w.next != nil && l.rules.Stands(now, l.waited(now, w.call.Priority), l.goesBefore(w)) {
		return w.flow.calls.last
	}
	return w
}

// leave ends the wait of a call that does not go. If it was first the driver slept for it, and is woken
// to ask for the next. What the call has taken nowhere need not be put back: it held nothing.
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

// end ends the wait of a call that is in the order no more.
func (l *Line) end(w *waiter, err error) {
	w.done, w.err = true, err
	w.wakes.Wake()
	w.drops(end)
	l.handOn(w)
}

// handOn has another one drive if the waiter did.
func (l *Line) handOn(w *waiter) {
	if l.driver == w {
		l.setDriver(l.order.first())
		if l.driver != nil {
			l.driver.wakes.Wake()
		}
	}
	l.all.tidy(l)
}

// drives has a waiter drive if nobody does.
func (l *Line) drives(w *waiter) {
	if l.driver == nil && !w.done {
		l.setDriver(w)
	}
}

// setDriver says who drives, also to those who wake the driver without the lock; nil if nobody waits.
func (l *Line) setDriver(w *waiter) {
	if l.driver = w; w == nil {
		l.waker.Store(nil)
		return
	}
	l.waker.Store(w.wakes)
}
