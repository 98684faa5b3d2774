package line

import (
	"time"

	"github.com/seed1158cd35/weir/clock"
)

// A waiter is a call in a line. Its fields are behind the line's lock.
type waiter struct {
	ask         Asker
	came, until time.Duration
	last        time.Duration // however long it would wait by the rules
	prev, next  *waiter
	done        bool
	err         error
	place       Place
	wakes       *clock.Waker
}

func (l *Line) push(w *waiter) {
	if w.prev = l.last; w.prev == nil {
		l.first, l.since = w, w.came
	} else {
		w.prev.next = w
	}
	l.last = w
	l.waiting.Add(1)
}

// next is whose turn it is.
func (l *Line) next(now time.Duration) *waiter {
	if l.first != nil && l.first != l.last && l.rules.Stands(l.waited(now)) {
		return l.last
	}
	return l.first
}

// late reports whether a waiter's time is up.
func (l *Line) late(w *waiter, now time.Duration) bool {
	if now < w.until {
		return false
	}
	w.until = min(w.last, l.rules.Longer(now, w.came, l.Waiting()))
	return now >= w.until
}

// leave ends the wait of one who does not go.
func (l *Line) leave(w *waiter, err error) {
	w.place = Place{1, l.Waiting()}
	for v := w.prev; v != nil; v = v.prev {
		w.place.Place++
	}
	l.end(w, err)
}

// end takes a waiter out. If it was the driver, another one is.
func (l *Line) end(w *waiter, err error) {
	if w.prev == nil {
		l.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		l.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	l.waiting.Add(-1)
	w.done, w.err = true, err
	w.wakes.Wake()
	if l.driver != w {
		return
	}
	if l.driver = l.first; l.driver != nil {
		l.driver.wakes.Wake()
	}
}
