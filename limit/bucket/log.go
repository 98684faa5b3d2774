package bucket

import (
	"math"
	"time"
)

// A Window never lets more than Amount units go in any window of length Per:
// nothing like a bucket's burst comes on top.
//
// "Any window" is half open: units that are exactly Per apart stand in different
// windows.
type Window struct {
	Amount int64
	Per    time.Duration
}

// remembered is how many calls of one window a Log tells apart. Windows of as many
// units and more are divided into as many grains, less two: calls of one grain are
// remembered together, from the last of them, so for a grain too long at most.
const remembered = 1024

// A Log is what went within the last window, oldest first. It takes no more than 24 KiB;
// it begins with next to nothing. It is for one goroutine at a time. Make it with NewLog.
type Log struct {
	Window
	grain time.Duration // 0: every call is told apart

	ring       []entry // a power of two long
	base, next uint64  // the oldest entry, and the one that comes next
	seq        uint64  // the Mark of the latest entry
	gone       uint64  // that of the latest that was forgotten
	sum        int64   // units in all entries
	now        time.Duration
	until      time.Duration // to this instant calls go into the latest entry

	// ref is the earliest instant for whoever asks now, and tail the first entry that
	// counts then. used is the units in those.
	ref  time.Duration
	tail uint64
	used int64
}

// An entry is units that count from an instant.
type entry struct {
	at time.Duration
	n  int64
	id uint64
}

// A Mark names what Take gave. The zero Mark is that of nothing.
type Mark uint64

// NewLog is an empty log.
func NewLog(w Window) Log { return Log{Window: w, grain: w.grain()} }

func (w Window) grain() time.Duration {
	if w.Amount < remembered {
		return 0
	}
	return (w.Per + remembered - 3) / (remembered - 2) // two grains can straddle the edges
}

// latest leaves room to count with instants.
const latest = math.MaxInt64 / 2

// Take takes n units if they may go now, and not before notBefore. If they may not it changes
// nothing, and says how long it takes until they may: Never if n is above the amount. A cost of
// 0 is always met.
func (g *Log) Take(now, notBefore time.Duration, n int64) (m Mark, wait time.Duration, ok bool) {
	if wait = g.Ask(now, notBefore, n); wait > 0 || n <= 0 {
		return 0, wait, wait == 0
	}
	return g.add(g.now, n), 0, true
}

// Ask is how long n units would have to wait. It takes nothing.
func (g *Log) Ask(now, notBefore time.Duration, n int64) time.Duration {
	if n <= 0 || n > g.Amount {
		return unlessNothing(n)
	}
	g.turn(now, notBefore)
	return g.earliest(g.ref, n) - g.now
}

func unlessNothing(n int64) time.Duration {
	if n == 0 {
		return 0
	}
	return Never
}

// turn brings the log to the instant, and ref to the first at which who asks now may go.
func (g *Log) turn(now, notBefore time.Duration) {
	g.forget(now)
	g.refer(max(g.now, notBefore))
}

// forget drops what has left the window, and what came back whole before that.
func (g *Log) forget(now time.Duration) {
	g.now = max(g.now, now)
	edge := g.now - g.Per
	for g.base < g.next {
		e := g.entry(g.base)
		if e.n > 0 && e.at > edge {
			return
		}
		if g.tail == g.base {
			g.used -= e.n
			g.tail++
		}
		g.sum -= e.n
		g.gone = e.id
		g.base++
	}
}

// refer finds what counts at an instant.
func (g *Log) refer(ref time.Duration) {
	g.ref = ref
	for edge := ref - g.Per; g.tail < g.next; g.tail++ {
		e := g.entry(g.tail)
		if e.at > edge {
			break
		}
		g.used -= e.n
	}
	for edge := ref - g.Per; g.tail > g.base; g.tail-- {
		e := g.entry(g.tail - 1)
		if e.at <= edge {
			break
		}
		g.used += e.n
	}
}

// earliest is when n units may go, from ref on.
func (g *Log) earliest(ref time.Duration, n int64) time.Duration {
	over := g.used + n - g.Amount
	for i := g.tail; over > 0; i++ {
		e := g.entry(i)
		if over -= e.n; over <= 0 {
			return max(ref, e.at+g.Per)
		}
	}
	return ref
}

// entry is the one at a position.
func (g *Log) entry(i uint64) *entry { return &g.ring[i&uint64(len(g.ring)-1)] }

// add counts units that go now.
func (g *Log) add(at time.Duration, n int64) Mark {
	if g.next > g.base {
		if e := g.entry(g.next - 1); at < g.until || at == e.at {
			e.at, e.n = at, e.n+n
			g.used, g.sum = g.used+n, g.sum+n
			return Mark(e.id)
		}
	}
	g.seq++
	g.append(entry{at, n, g.seq})
	if g.grain > 0 {
		g.until = at - at%g.grain + g.grain
	}
	return Mark(g.seq)
}

func (g *Log) push(e entry) {
	*g.entry(g.next) = e
	g.next++
}

// find is the entry of a mark, nil if it is forgotten.
func (g *Log) find(m Mark) (i uint64, e *entry) {
	if uint64(m) <= g.gone || uint64(m) > g.seq {
		return 0, nil
	}
	lo, hi := g.base, g.next
	for lo < hi {
		if i := lo + (hi-lo)/2; g.entry(i).id >= uint64(m) {
			hi = i
		} else {
			lo = i + 1
		}
	}
	if lo == g.next {
		return 0, nil
	}
	return lo, g.entry(lo)
}
