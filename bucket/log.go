package bucket

import (
	"slices"
	"time"
)

// A Window never lets more than Amount units go in any window of length Per:
// nothing like a bucket's burst comes on top. It remembers each caller, so it is
// meant for small limits such as 5 per rolling minute.
//
// "Any window" is half open: units that are exactly Per apart stand in different
// windows.
type Window struct {
	Amount int64
	Per    time.Duration
}

// Remembered is how many callers a Log tells apart. Beyond it the oldest are
// taken together at the later one's instant, which can only delay those to come.
const Remembered = 1024

// A Log is what went and what is booked within the last window, oldest first.
// It is a value: methods return another Log and leave this one as it is. The
// zero Log is empty.
type Log struct {
	marks []mark
	seq   uint64
}

type mark struct {
	at  time.Duration
	n   int64
	seq uint64
}

// A Mark names one caller's entry in a Log.
type Mark struct{ seq uint64 }

// ID and MarkOf let a mark be kept as a number.
func (m Mark) ID() uint64   { return m.seq }
func MarkOf(id uint64) Mark { return Mark{id} }

// Take books n units as of now and returns how long to wait for them. If that is
// longer than patience, or n is above the amount, or as many wait as are
// remembered, it reports false and next is g. Callers go in the order in which
// they asked; a cost of 0 is always met.
func (g Log) Take(w Window, now time.Duration, n int64, patience time.Duration) (next Log, m Mark, wait time.Duration, ok bool) {
	return g.TakeFrom(w, now, now, n, patience)
}

// TakeFrom is Take for units that must not go before the instant from, for there is a
// pause until then. What still counts now is remembered, as that may be lifted.
func (g Log) TakeFrom(w Window, now, from time.Duration, n int64, patience time.Duration) (next Log, m Mark, wait time.Duration, ok bool) {
	if n < 0 || n > w.Amount {
		return g, Mark{}, Never, false
	}
	if n == 0 {
		return g, Mark{}, 0, true
	}
	at := g.earliest(w, max(now, from), n)
	old := g.passed(now - w.Per)
	full := len(g.marks)-old >= Remembered
	if wait = at - now; wait > patience || full && g.marks[old+1].at > now {
		return g, Mark{}, wait, false
	}
	next = Log{slices.Concat(g.marks[old:], make([]mark, 0, 1)), g.seq + 1}
	if full {
		next.marks[1].n += next.marks[0].n
		next.marks = next.marks[1:]
	}
	next.marks = append(next.marks, mark{at, n, next.seq})
	return next, Mark{next.seq}, wait, true
}

// earliest is when n units may go: not before those who asked earlier, and not
// while they and n together are more than a window holds.
func (g Log) earliest(w Window, now time.Duration, n int64) time.Duration {
	at := now
	if k := len(g.marks); k > 0 {
		at = max(at, g.marks[k-1].at)
	}
	room := w.Amount - n
	for i := len(g.marks) - 1; i >= 0; i-- {
		m := g.marks[i]
		if m.at+w.Per <= at {
			break
		}
		if room -= m.n; room < 0 {
			return max(at, m.at+w.Per)
		}
	}
	return at
}

// passed is how many entries lie at the instant or before it.
func (g Log) passed(at time.Duration) int {
	i := 0
	for i < len(g.marks) && g.marks[i].at <= at {
		i++
	}
	return i
}

// When is the instant at which the entry may go.
func (g Log) When(m Mark) (time.Duration, bool) {
	for i := len(g.marks) - 1; i >= 0; i-- {
		if g.marks[i].seq == m.seq {
			return g.marks[i].at, true
		}
	}
	return 0, false
}

// Back gives back up to n units of an entry and says how many those were. An
// entry that went together with a younger one cannot be given back.
func (g Log) Back(m Mark, n int64) (next Log, back int64) {
	for i := range g.marks {
		if g.marks[i].seq != m.seq {
			continue
		}
		next = Log{slices.Clone(g.marks), g.seq}
		back = min(n, g.marks[i].n)
		if next.marks[i].n -= back; next.marks[i].n == 0 {
			next.marks = slices.Delete(next.marks, i, i+1)
		}
		return next, back
	}
	return g, 0
}

// Owe adds n units that have been used already, whatever the window holds: who comes
// next waits until they and all others of the window are few enough. Those who wait
// already may have to wait longer.
func (g Log) Owe(w Window, now time.Duration, n int64) Log {
	if n <= 0 {
		return g
	}
	old, i := g.passed(now-w.Per), g.passed(now)
	next := Log{make([]mark, 0, len(g.marks)-old+1), g.seq + 1}
	next.marks = append(append(next.marks, g.marks[old:i]...), mark{now, min(n, mostOwed), next.seq})
	next.marks = append(next.marks, g.marks[i:]...)
	if len(next.marks) > Remembered && next.marks[1].at <= now {
		next.marks[1].n += next.marks[0].n
		next.marks = next.marks[1:]
	}
	return next.Replan(w, now, now)
}

// mostOwed keeps sums of debts within an int64.
const mostOwed = 1 << 50

// Replan gives those who still wait their turns anew, in their order, not before
// the instant: after a pause, or for another window. None comes earlier than it
// was: who has been told to wait would go late, and be forgotten too early.
func (g Log) Replan(w Window, now, notBefore time.Duration) Log {
	i := g.passed(now)
	next := Log{slices.Clone(g.marks[:i]), g.seq}
	for _, m := range g.marks[i:] {
		m.at = next.earliest(w, max(m.at, notBefore), min(m.n, w.Amount))
		next.marks = append(next.marks, m)
	}
	return next
}

// Here is the log without those who still wait: they have to ask anew.
func (g Log) Here(now time.Duration) Log {
	return Log{slices.Clone(g.marks[:g.passed(now)]), g.seq}
}

// Waiting is the units that are booked for after now.
func (g Log) Waiting(now time.Duration) (n int64) {
	for _, m := range g.marks[g.passed(now):] {
		n += m.n
	}
	return n
}

// Left is the units that could go now.
func (g Log) Left(w Window, now time.Duration) int64 {
	left := w.Amount
	for _, m := range g.marks {
		if m.at+w.Per > now {
			left -= m.n
		}
	}
	return max(0, left)
}

// Reset is how long until everything is there again.
func (g Log) Reset(w Window, now time.Duration) time.Duration {
	if len(g.marks) == 0 {
		return 0
	}
	return max(0, g.marks[len(g.marks)-1].at+w.Per-now)
}
