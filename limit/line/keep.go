package line

import (
	"cmp"
	"iter"
	"slices"
	"time"
)

const (
	// keptFor is for how long at most something is kept beyond the instant for which it is.
	keptFor = 100 * time.Millisecond

	// mostKept is for how many calls a line keeps something at most: for those that came first. All of
	// it is gone through for each call that asks. Who is not among them takes its place in the line
	// again when it comes back, and the first of them always gets what is kept for it.
	mostKept = 16
)

// A kept is what a line keeps for a call that has gone on to wait in another one.
//
// A call of several limits goes when all of them have enough. Whichever lets it go, others
// may just have spent the next one, so that it would never go among calls of one limit each.
// So the line that it leaves keeps what it needs at the instant at which the other lets it go,
// if it is first there. Calls that came later go meanwhile as far as that is not touched.
type kept struct {
	w         *waiter
	at, until time.Duration
}

// A Kept is what may not be touched, for a call that came before.
type Kept struct {
	Asker
	At    time.Duration // when it is needed
	Until time.Duration // when it is kept no more
}

// keep has the line keep what a waiter that leaves it needs at an instant.
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

// drop ends that the line keeps something for a waiter.
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

// drops ends that lines keep for a waiter what it was to need before an instant.
func (w *waiter) drops(before time.Duration) {
	for _, l := range slices.Clone(w.keeps) {
		if slices.ContainsFunc(l.kept, func(k kept) bool { return k.w == w && k.at < before }) {
			l.drop(w)
		}
	}
}

// Keeps reports whether anything is kept. It is for Ask alone, as are Kept and Behind.
func (s *Lines) Keeps() bool { return s.keeps > 0 }

// Kept is what is kept in the line of a key for those who came before a call, in the order in which
// it is needed.
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

// Behind reports whether a call would overtake the first who waits in the line of a key.
func (s *Lines) Behind(key any, c *Call) bool {
	l := s.byKey[key]
	if l == nil {
		return false
	}
	w := l.order.first()
	return w != nil && w.call != c && (c.Came == 0 || w.call.Came < c.Came)
}
