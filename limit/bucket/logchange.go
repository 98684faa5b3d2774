package bucket

import (
	"slices"
	"time"
)

// room makes room for another entry: by putting calls of one grain together once they
// have gone, by leaving out what came back, or by more memory. It reports whether there
// is any.
func (g *Log) room() bool {
	size := len(g.ring)
	if size < remembered {
		g.resize(max(4, 2*size))
		return true
	}
	g.compact()
	free := size - int(g.next-g.base)
	if waiting := g.next > g.first(g.now); free < size/8 && waiting && size < remembered+mostWaiting {
		g.resize(remembered + mostWaiting)
		return true
	}
	return free > 0
}

func (g *Log) resize(size int) {
	old := *g
	g.ring = make([]entry, size)
	for i := g.base; i < g.next; i++ {
		*g.entry(i) = *old.entry(i)
	}
}

func (g *Log) compact() {
	to := g.base
	for i := g.base; i < g.next; i++ {
		e := *g.entry(i)
		if e.n == 0 {
			continue
		}
		if to > g.base && g.together(g.entry(to-1).at, e.at) {
			to--
			e.n += g.entry(to).n
		}
		*g.entry(to) = e
		to++
	}
	g.next, g.empty = to, false
	g.recount()
}

// together reports whether calls of two instants are of one grain, and have gone.
func (g *Log) together(a, b time.Duration) bool {
	return g.grain > 0 && b <= g.now && a/g.grain == b/g.grain
}

// recount finds anew what counts at ref.
func (g *Log) recount() {
	g.sum = 0
	for i := g.base; i < g.next; i++ {
		g.sum += g.entry(i).n
	}
	g.tail, g.used = g.base, g.sum
	g.refer(g.ref)
}

// Back gives back up to n units of a mark and says how many those were.
func (g *Log) Back(m Mark, n int64) (back int64) {
	i, e := g.find(m)
	if e == nil || n <= 0 {
		return 0
	}
	back = min(n, e.n)
	e.n -= back
	if g.sum -= back; i >= g.tail {
		g.used -= back
	}
	g.empty = g.empty || e.n == 0
	for g.next > g.base && g.entry(g.next-1).n == 0 {
		g.next--
		g.tail, g.until = min(g.tail, g.next), 0
	}
	return back
}

// mostOwed keeps sums of debts within an int64.
const mostOwed = 1 << 50

// Owe adds n units that have been used already, whatever the window holds: who comes
// next waits until they and all others of the window are few enough. Those who wait
// already may have to wait longer.
func (g *Log) Owe(now time.Duration, n int64) {
	g.forget(now)
	if n = min(n, mostOwed-g.sum); n <= 0 {
		return
	}
	later := g.cut()
	if len(later) == 0 {
		g.add(g.now, n)
		return
	}
	before := g.gone // marks are in order, and nobody asks for that of a debt
	if g.next > g.base {
		before = g.entry(g.next - 1).id
	}
	g.append(entry{g.now, n, before})
	g.restore(later, 0)
}

// Replan gives those who still wait their turns anew, in their order, not before
// the instant: after a pause, or for another window. None comes earlier than it
// was: who has been told to wait would go late, and be forgotten too early.
func (g *Log) Replan(now, notBefore time.Duration) {
	g.forget(now)
	g.restore(g.cut(), notBefore)
}

// Here leaves out those who still wait: they have to ask anew.
func (g *Log) Here(now time.Duration) {
	g.forget(now)
	later := g.cut()
	if len(later) == 0 {
		return
	}
	before := g.gone
	if g.next > g.base {
		before = max(before, g.entry(g.next-1).id)
	}
	g.void = slices.DeleteFunc(g.void, func(v span) bool { return v.last <= g.gone })
	if len(g.void) == mostVoid {
		g.void[1].first = g.void[0].first // who went in between cannot give anything back
		g.void = g.void[1:]
	}
	g.void = append(g.void, span{before + 1, g.seq})
}

// mostVoid bounds how many lifts of pauses a log tells apart.
const mostVoid = 8

// Set gives the log another window.
func (g *Log) Set(now, notBefore time.Duration, w Window) {
	g.Window, g.grain, g.until = w, w.grain(), 0
	g.Replan(now, notBefore)
}

// cut takes out what goes later.
func (g *Log) cut() (later []entry) {
	first := g.first(g.now)
	for i := first; i < g.next; i++ {
		later = append(later, *g.entry(i))
	}
	g.next, g.until = first, 0
	g.recount()
	return later
}

func (g *Log) restore(later []entry, notBefore time.Duration) {
	for _, e := range later {
		if e.n == 0 {
			continue
		}
		ref := max(e.at, notBefore)
		if g.next > g.base {
			ref = max(ref, g.entry(g.next-1).at)
		}
		g.refer(ref)
		e.at = g.earliest(ref, min(e.n, g.Amount))
		g.append(e)
	}
}

// append adds an entry by itself. If there is no room for it, more units are owed than a
// window holds calls, and the two oldest count from the later one's instant.
func (g *Log) append(e entry) {
	if g.next-g.base == uint64(len(g.ring)) && !g.room() {
		g.join()
	}
	g.used += e.n
	g.sum += e.n
	g.push(e)
}

// join puts the two oldest entries together.
func (g *Log) join() {
	old := *g.entry(g.base)
	g.base++
	g.entry(g.base).n += old.n
	g.gone = old.id
	g.recount()
}

// Ahead is the units that are booked for later.
func (g *Log) Ahead(now time.Duration) (n int64) {
	g.forget(now)
	for i := g.first(g.now); i < g.next; i++ {
		n += g.entry(i).n
	}
	return n
}

// Left is the units that could go now, were nothing booked.
func (g *Log) Left(now time.Duration) int64 {
	g.forget(now)
	return max(0, g.Amount-g.sum)
}

// Reset is how long until everything is there again.
func (g *Log) Reset(now time.Duration) time.Duration {
	if g.forget(now); g.next == g.base {
		return 0
	}
	return g.entry(g.next-1).at + g.Per - g.now
}

// Clone is a log of its own with the same in it.
func (g *Log) Clone() Log {
	c := *g
	c.ring, c.void = slices.Clone(g.ring), slices.Clone(g.void)
	return c
}
