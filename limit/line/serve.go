package line

import (
	"context"
	"math"
	"slices"
	"time"
)

// A line whose first has to wait so long has those give up that cannot wait as long.
const far = time.Second

// serve lets everyone go for whom there is enough, in turn: it asks for the first until one has to
// wait, and for nobody behind that one. Each case is where the answer leads. The lock of the lines is
// held, while askers are asked too, so that those must not block.
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

// kick is serve by others than the driver, which may have to fetch then. Whoever gives something back,
// lifts a pause or raises a limit kicks: the driver would find out only when its sleep ends.
func (l *Line) kick(now time.Duration) {
	l.serve(now)
	if l.fetch != nil && l.driver != nil {
		l.driver.wakes.Wake()
	}
}

// fetches has the driver get what those in its line wait for, from a store, say, and returns what time
// it is then. The lock is held before and after, and free meanwhile: calls may come, go and take over.
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
	never = time.Duration(1) << 60       // longer than anybody waits; not an instant, which may be later
	end   = time.Duration(math.MaxInt64) // an instant after all others
)

// goes takes out a call whose turn it is, and whose flow pays for it.
func (l *Line) goes(w *waiter) { l.order.pop(w, &l.all.config.Weights) }

// waits notes when the first can go at the earliest (due), and when it is asked for again, which may be
// sooner. A driver that sleeps for longer than that is woken.
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

// sendAway ends the wait of those who cannot wait until the first goes, in the order in which they came.
// It looks at all who wait, and so is called only where somebody may have to leave.
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

// moves has a call wait in another line, for the thing that it lacks there. It sleeps still, or asks at
// the moment. The line that it leaves keeps for it what it needs of its thing when the other lets it go
// (see keep.go): without that, calls of two limits would starve among calls of one each.
func (l *Line) moves(now time.Duration, w *waiter, s Step) {
	t := l.all.line(s.Spot.Key)
	l.order.remove(w)
	w.at(s.Spot)
	t.push(now, w)
	t.drop(w) // after that: a line that only kept for it would be forgotten
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
