package bucket

import (
	"math"
	"time"
)

// A Window allows at most Amount units in any window of length Per, without an additional burst.
//
// Windows are half open: units that are exactly Per apart are in different windows.
type Window struct {
	Amount int64
	Per    time.Duration
}

// remembered is the number of calls per window that a Log stores separately. Windows of this many units and more are
// divided into this many grains, minus two. All calls of a grain count from the last of them, so at most a grain
// longer.
const remembered = 1024

// A Log contains the usage within the last window, oldest first. It takes at most 24 KiB and starts small. It is not
// safe for concurrent use. Create it with NewLog.
type Log struct {
	Window
	grain time.Duration // 0: every call is stored separately

	ring       []entry // the length is a power of two
	base, next uint64  // the oldest entry and the next one
	seq        uint64  // the Mark of the latest entry
	gone       uint64  // the Mark of the latest forgotten entry
	sum        int64   // units in all entries
	now        time.Duration
	until      time.Duration // until this instant calls are added to the latest entry

	// ref is the earliest instant for a caller that asks now. tail is the first entry that counts then, and used the
	// units from there on.
	ref  time.Duration
	tail uint64
	used int64

	gifts map[uint64]int64 // units of entries that Give removed, by ID; nil if there are none
}

// An entry contains units that count from an instant.
type entry struct {
	at time.Duration
	n  int64
	id uint64
}

// A Mark identifies a grant of Take. The zero Mark belongs to no grant.
type Mark uint64

// NewLog returns an empty log.
func NewLog(w Window) Log { return Log{Window: w, grain: w.grain()} }

func (w Window) grain() time.Duration {
	if w.Amount < remembered {
		return 0
	}
	return (w.Per + remembered - 3) / (remembered - 2) // two grains can straddle the edges
}

// latest leaves room for additions to instants.
const latest = math.MaxInt64 / 2

// Take takes n units if they may be used now, and not before notBefore. Otherwise it changes nothing and returns the
// wait: Never if n exceeds the amount. A cost of 0 is always met.
func (g *Log) Take(now, notBefore time.Duration, n int64) (m Mark, wait time.Duration, ok bool) {
	if wait = g.Ask(now, notBefore, n); wait > 0 || n <= 0 {
		return 0, wait, wait == 0
	}
	return g.add(g.now, n), 0, true
}

// Ask returns how long n units would have to wait. It takes nothing.
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

// turn advances the log to the instant, and ref to the first instant at which a caller that asks now may proceed.
func (g *Log) turn(now, notBefore time.Duration) {
	g.forget(now)
	g.refer(max(g.now, notBefore))
}

// forget drops entries that have left the window, and entries before them that were returned completely.
func (g *Log) forget(now time.Duration) {
	g.now = max(g.now, now)
	edge := g.now - g.Per
	for g.base < g.next {
		e := g.entry(g.base)
		if (e.n > 0 || g.gifts[e.id] > 0) && e.at > edge {
			return
		}
		delete(g.gifts, e.id)
		if g.tail == g.base {
			g.used -= e.n
			g.tail++
		}
		g.sum -= e.n
		g.gone = e.id
		g.base++
	}
}

// refer computes the usage that counts at an instant.
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

// earliest returns when n units may be used, from ref on.
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

// entry returns the entry at a position.
func (g *Log) entry(i uint64) *entry { return &g.ring[i&uint64(len(g.ring)-1)] }

// add counts units that are used now.
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

// find returns the entry of a mark, nil if it is forgotten.
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
