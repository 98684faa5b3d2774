package line

import (
	"context"
	"math"
	"slices"
	"time"
)

// far is the wait of the first call from which calls that cannot wait as long are sent away.
const far = time.Second

// serve admits calls in turn while there is enough: it asks for the first call until one has to wait, and for no call
// behind that one. The lock of the queues is held, also while askers are asked, so askers must not block.
func (l *Line) serve(now time.Duration) {
	for w := l.next(now); w != nil; w = l.next(now) {
		s := w.call.Ask(now, min(now, l.due))
		if s.Kind == Away && l.away >= max(s.Room, 1) {
			l.again = now + never // until one comes back
			return
		}
		switch s.Kind {
		case Go:
			l.goes(w)
			l.all.leaves(w)
			l.end(w, nil)
		case Away:
			l.away++
			w.call.away = w
			l.goes(w)
			l.end(w, nil)
		case Refuse:
			l.leave(w, ErrRefused, allFlows)
		case Move:
			l.moves(now, w, s)
		case Store:
			l.due, l.fetch = now, s.Fetch
			return
		default:
			w.drops(now + s.For)
			l.waits(now, s)
			return
		}
	}
}

// kick is serve for goroutines other than the driver's. If units must be fetched, it wakes the driver. Every caller
// that returns something, lifts a pause or raises a limit must kick, because the driver notices only at the end of
// its sleep.
func (l *Line) kick(now time.Duration) {
	l.serve(now)
	if l.fetch != nil && l.driver != nil {
		l.driver.wakes.Wake()
	}
}

// fetches makes the driver fetch what the calls of its queue wait for, for example from a store, and returns the
// present instant. The lock is held before and after, and free meanwhile: calls may come, go and take over.
func (l *Line) fetches(ctx context.Context, now time.Duration, w *waiter) time.Duration {
	fetch, again, came := l.fetch, now, now
	l.fetch = nil
	l.all.unlocked(func() {
		again = fetch(ctx, now, w.call)
		now = l.all.clock.Now()
	})
	if l.driver != w {
		return now
	}
	if l.due, l.again = again, again; again <= came {
		l.due = now
		l.serve(now)
	}
	return now
}

const (
	never = time.Duration(1) << 60       // longer than any wait; not an instant, because instants may be later
	end   = time.Duration(math.MaxInt64) // the last instant
)

// goes removes a call whose turn it is, and charges its flow.
func (l *Line) goes(w *waiter) { l.order.pop(w, &l.all.config.Weights) }

// waits records when the first call can go at the earliest (due), and when to ask it again, which may be earlier. It
// wakes a driver that sleeps longer.
func (l *Line) waits(now time.Duration, s Step) {
	due := now + s.For
	again := due
	if s.Again > 0 {
		again = min(due, now+s.Again)
	}
	sooner := again < l.again
	if l.due, l.again = due, again; sooner && l.driver != nil {
		l.driver.wakes.Wake()
	}
	if due-now > far && l.rules == nil && due > l.soonest {
		l.sendAway(due)
	}
}

// sendAway ends the waits of all calls that cannot wait until the first goes, in order of arrival. It examines all
// calls, so it is called only if some may have to leave.
func (l *Line) sendAway(due time.Duration) {
	var late []*waiter
	l.soonest = end
	for _, w := range l.order.inPriorities(nil) {
		if w.call.Until < due {
			late = append(late, w)
		} else {
			l.soonest = min(l.soonest, w.call.Until)
		}
	}
	slices.SortFunc(late, byArrival)
	for _, w := range late {
		l.leave(w, ErrLate, someOf)
	}
}

// moves moves a call to the queue of another limit, which has too few units for it. The call sleeps, or is asking at
// this moment. The queue that it leaves reserves its units for the instant at which the other limit admits it (see
// keep.go). Otherwise calls of two limits would starve among calls of one.
func (l *Line) moves(now time.Duration, w *waiter, s Step) {
	t := l.all.line(s.Spot.Key)
	l.order.remove(w)
	w.at(s.Spot)
	t.push(now, w)
	t.drop(w) // after that: a queue that exists only for the reservation would be forgotten
	if t.next(now) == w {
		l.keep(w, now+s.For)
	} else {
		l.drop(w)
	}
	l.handOn(w)
	t.drives(w)
	if t.next(now) == w {
		t.driver.wakes.Wake()
	}
}
