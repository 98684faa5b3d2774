package line

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

const (
	// keptFor is how long units are reserved beyond the instant for which they were reserved.
	keptFor = 100 * time.Millisecond

	// mostKept is for how many calls a queue reserves units: the earliest ones. Each call that asks goes through all
	// of them. Other calls return to their place in the queue, and the first call always gets its reservation.
	mostKept = 16
)

// A kept is a reservation by a queue for a call that has moved to another queue.
//
// A call of several limits proceeds when every limit has enough units. When one limit has, other calls may just have
// spent the next one, so that among calls with one limit each it would never proceed. So the queue that it leaves as
// the first reserves its units for the instant at which the other limit admits it. Later calls proceed as long as the
// reservation is not touched.
type kept struct {
	w         *waiter
	at, until time.Duration
}

// A Kept is a reservation for an earlier call.
type Kept struct {
	Asker
	At    time.Duration // when the units are needed
	Until time.Duration // when the reservation ends
}

// keep reserves what a waiter that leaves the queue needs at an instant.
func (l *Line) keep(w *waiter, at time.Duration) {
	l.drop(w)
	if len(l.kept) == mostKept {
		last := slices.MaxFunc(l.kept, func(a, b kept) int { return byArrival(a.w, b.w) }).w
		if last.call.Came < w.call.Came {
			return
		}
		l.drop(last)
	}
	i, _ := slices.BinarySearchFunc(l.kept, at, func(k kept, at time.Duration) int { return cmp.Compare(k.at, at) })
	l.kept = slices.Insert(l.kept, i, kept{w, at, at + keptFor})
	l.all.keeps++
	w.keeps = append(w.keeps, l)
}

// drop ends a reservation for a waiter.
func (l *Line) drop(w *waiter) {
	i := slices.IndexFunc(l.kept, func(k kept) bool { return k.w == w })
	if i < 0 {
		return
	}
	l.kept = slices.Delete(l.kept, i, i+1)
	l.all.keeps--
	w.keeps = slices.DeleteFunc(w.keeps, func(o *Line) bool { return o == l })
	if l.driver != nil {
		l.driver.wakes.Wake()
	}
	l.all.tidy(l)
}

// drops ends the reservations for a waiter that are for instants before the given one.
func (w *waiter) drops(before time.Duration) {
	for _, l := range slices.Clone(w.keeps) {
		if slices.ContainsFunc(l.kept, func(k kept) bool { return k.w == w && k.at < before }) {
			l.drop(w)
		}
	}
}

// Keeps reports whether there are reservations. Only Ask may call it, like Kept and Behind.
func (s *Lines) Keeps() bool { return s.keeps > 0 }

// Kept returns the reservations in the queue of a key for calls that came before a call, in the order of need.
func (s *Lines) Kept(now time.Duration, key any, c *Call) iter.Seq[Kept] {
	return func(yield func(Kept) bool) {
		l := s.byKey[key]
		if l == nil {
			return
		}
		for _, k := range l.kept {
			if k.w.call != c && (c.Came == 0 || k.w.call.Came < c.Came) && k.until > now && !yield(Kept{k.w.call.Asker, k.at, k.until}) {
				return
			}
		}
	}
}

// Behind reports whether a call would overtake the first call in the queue of a key.
func (s *Lines) Behind(key any, c *Call) bool {
	l := s.byKey[key]
	if l == nil {
		return false
	}
	w := l.order.first()
	return w != nil && w.call != c && (c.Came == 0 || w.call.Came < c.Came)
}
