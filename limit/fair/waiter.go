package fair

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// ErrLate is why a wait ends whose time is over, or whose turn cannot come before
// that.
var ErrLate = errors.New("turn would come too late")

const (
	// slack is how soon the turn of a head must be for the next to become one, too:
	// timers are late by so much, and a limit of small burst must not stand still
	// meanwhile. Nothing is lost so if the call costs more than large, for as much as
	// that the burst keeps.
	slack = 2 * time.Millisecond
	large = 10 * time.Millisecond

	// A head whose turn is so far away has others give up that cannot wait so long.
	far = time.Second
)

// A Waiter is a call that stands in a queue. Its methods are for the goroutine that
// waits.
type Waiter[K comparable] struct {
	all            *Queues[K]
	call           Call
	queue          *queue[K]
	flow           *flow[K]
	prev, next     *Waiter[K]
	state          state
	near           bool  // its turn is at hand: it is no obstacle for another head
	stays          bool  // it is a head even out of turn, and yields to nobody
	paid, lanePaid int64 // by its flow and its lane
	saved          int64 // by its flow while that was away
	tag            int64 // of its flow before it was charged
	place          Place // of one that was sent away
	ready          chan struct{}
	wake           func() // in a clock that is not the system's
}

type state uint8

const (
	waits state = iota
	leads
	late // sent away, as its turn cannot come in time
	gone
)

// Wait waits until the call is a head. The error is ErrLate, with the place that it
// had, or the cause of ctx's end. Either way the waiter must Leave.
func (w *Waiter[K]) Wait(ctx context.Context) (Place, error) {
	for {
		now := w.all.clock.Now()
		w.all.mu.Lock()
		p, err, over := w.look(now)
		w.all.mu.Unlock()
		if over {
			return p, err
		}
		if err := w.Sleep(ctx, w.call.Until-now); err != nil && !w.decided() {
			return Place{}, err
		}
	}
}

// look reports whether the wait is over, and how.
func (w *Waiter[K]) look(now time.Duration) (p Place, err error, over bool) {
	switch {
	case w.state == leads:
		return p, nil, true
	case w.state == late:
		return w.place, ErrLate, true
	case now >= w.call.Until:
		return w.stands(allFlows), ErrLate, true
	}
	return p, nil, false
}

// decided reports whether the wait is over for another reason than the end of a
// context: whose own deadline it may be that the call has waited for.
func (w *Waiter[K]) decided() bool {
	now := w.all.clock.Now()
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	_, _, over := w.look(now)
	return over
}

// stands is its place in a lane, so many flows having been looked at.
func (w *Waiter[K]) stands(flows int) Place {
	n, cost := w.before()
	p := w.queue.place(&w.call, w.flow, n, cost, &w.all.config.Weights, flows)
	p.Place = min(p.Place, p.Waiting)
	return p
}

// Here is the place of a head.
func (w *Waiter[K]) Here() Place {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	return Place{Place: 1, Waiting: w.queue.n + w.queue.led, Due: w.queue.due}
}

// Booked notes when the turn of a head comes. If that is far away, those who cannot
// wait so long are sent away; if it is at hand, the next may ask already. It is false
// if another goes before this one: then the head must give back what it has booked,
// Yield, and Wait again.
func (w *Waiter[K]) Booked(now, due time.Duration) bool {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	q := w.queue
	near := due-now <= w.slack()
	if !near && q.head() == w && q.overtaken(w) {
		return false
	}
	if q.due < due || q.led == 1 {
		q.due = due
	}
	switch {
	case near && !w.near:
		w.near = true
		q.heads--
	case !near && w.near: // a pause came, or the rate has been lowered
		w.near = false
		q.heads++
	}
	if due-now > far && q.room == 1 {
		q.sendAway(due)
	}
	w.all.dispatch(q)
	return true
}

func (w *Waiter[K]) slack() time.Duration {
	if w.call.Cost > large {
		return 0
	}
	return slack
}

// Yield has a head that has booked nothing stand at the front of its flow again.
// Whoever is next then becomes a head, which may be the same.
func (w *Waiter[K]) Yield() {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.queue.yield(w)
	w.all.dispatch(w.queue)
}

// sendAway ends the wait of those who cannot wait until the head goes.
func (q *queue[K]) sendAway(due time.Duration) {
	var over []*Waiter[K]
	for i := range q.lanes {
		for _, f := range q.lanes[i].waiting {
			for w := f.calls.first; w != nil; w = w.next {
				if w.call.Until < due {
					w.place = w.stands(someOf)
					over = append(over, w)
				}
			}
		}
	}
	for _, w := range over {
		q.remove(w)
		w.state = late
		w.signal()
	}
}

// Sleep waits for d, until something has changed for the waiter, or until ctx ends,
// and then returns the cause of ctx's end.
func (w *Waiter[K]) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	if w.all.clock != clock.System {
		return w.sleepVirtual(ctx, d)
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-w.ready:
		return nil
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// sleepVirtual is Sleep in a clock that knows only its own contexts, and runs one
// goroutine at a time.
func (w *Waiter[K]) sleepVirtual(ctx context.Context, d time.Duration) error {
	inner, cancel := w.all.clock.WithTimeout(ctx, math.MaxInt64/4, nil)
	defer cancel()
	if !w.wakeable(cancel) {
		_ = w.all.clock.Sleep(inner, d)
		w.wakeable(nil)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// wakeable says how to wake the waiter, and reports whether it has been woken
// already.
func (w *Waiter[K]) wakeable(wake func()) (woken bool) {
	w.all.mu.Lock()
	defer w.all.mu.Unlock()
	w.wake = wake
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// signal wakes a waiter; the lock is held.
func (w *Waiter[K]) signal() {
	select {
	case w.ready <- struct{}{}:
	default:
	}
	if w.wake != nil {
		w.wake()
	}
}
