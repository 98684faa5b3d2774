package bucket

import (
	"maps"
	"slices"
	"time"
)

// room makes room for another entry: it allocates memory, merges calls of one grain, or removes returned entries. It
// reports whether there is room.
func (g *Log) room() bool {
	size := len(g.ring)
	if size < remembered {
		g.resize(max(4, 2*size))
		return true
	}
	g.compact()
	return int(g.next-g.base) < size
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
	g.next = to
	g.recount()
}

// together reports whether calls of two instants are of one grain.
func (g *Log) together(a, b time.Duration) bool { return g.grain > 0 && a/g.grain == b/g.grain }

// recount computes the usage that counts at ref.
func (g *Log) recount() {
	g.sum = 0
	for i := g.base; i < g.next; i++ {
		g.sum += g.entry(i).n
	}
	g.tail, g.used = g.base, g.sum
	g.refer(g.ref)
}

// Back returns up to n units of a mark. It returns their number.
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
	if given := min(n-back, g.gifts[e.id]); given > 0 {
		g.gifts[e.id] -= given
		back += g.give(given)
	}
	g.trim()
	return back
}

// Give removes up to n units, the oldest first, regardless of the calls that took them. It returns their number. If the call of
// a mark returns such units later, Back removes others instead.
func (g *Log) Give(now time.Duration, n int64) (given int64) {
	g.forget(now)
	given = g.give(n)
	g.trim()
	return given
}

func (g *Log) give(n int64) (given int64) {
	for i := g.base; i < g.next && given < n; i++ {
		e := g.entry(i)
		some := min(n-given, e.n)
		if some == 0 {
			continue
		}
		if g.gifts == nil {
			g.gifts = make(map[uint64]int64)
		}
		g.gifts[e.id] += some
		e.n -= some
		given += some
		if g.sum -= some; i >= g.tail {
			g.used -= some
		}
	}
	return given
}

// trim drops the latest entries if they were returned completely.
func (g *Log) trim() {
	for g.next > g.base && g.entry(g.next-1).n == 0 && g.gifts[g.entry(g.next-1).id] == 0 {
		g.next--
		g.tail, g.until = min(g.tail, g.next), 0
	}
}

// mostOwed keeps sums of debts within an int64.
const mostOwed = 1 << 50

// Owe adds n units that have been used already, also beyond the amount. The next caller waits until they fit into the
// window with all other usage.
func (g *Log) Owe(now time.Duration, n int64) {
	g.forget(now)
	if n = min(n, mostOwed-g.sum); n > 0 {
		g.add(g.now, n)
	}
}

// Set gives the log another window.
func (g *Log) Set(now time.Duration, w Window) {
	g.Window, g.grain, g.until = w, w.grain(), 0
	g.forget(now)
	g.recount()
}

// append adds a separate entry. If there is no room, the debt has more entries than a window has calls. The two
// oldest are then merged and count from the later one's instant.
func (g *Log) append(e entry) {
	if g.next-g.base == uint64(len(g.ring)) && !g.room() {
		g.join()
	}
	g.used += e.n
	g.sum += e.n
	g.push(e)
}

// join merges the two oldest entries.
func (g *Log) join() {
	old := *g.entry(g.base)
	g.base++
	g.entry(g.base).n += old.n
	g.gone = old.id
	g.recount()
}

// Left returns the units that can be used now.
func (g *Log) Left(now time.Duration) int64 {
	g.forget(now)
	return max(0, g.Amount-g.sum)
}

// Free returns the units that can be used now, or the debt as a negative number.
func (g *Log) Free(now time.Duration) int64 {
	g.forget(now)
	return g.Amount - g.sum
}

// Reset returns the time until all units are available.
func (g *Log) Reset(now time.Duration) time.Duration {
	if g.forget(now); g.next == g.base {
		return 0
	}
	return g.entry(g.next-1).at + g.Per - g.now
}

// Clone returns an independent copy of the log.
func (g *Log) Clone() Log {
	c := *g
	c.ring, c.gifts = slices.Clone(g.ring), maps.Clone(g.gifts)
	return c
}
