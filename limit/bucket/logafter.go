package bucket

import "time"

// After is how long it takes at least until n units can go, not before notBefore, if so many
// others go before them: each goes when what went a window before it counts no more.
func (g *Log) After(now, notBefore time.Duration, ahead, n int64) time.Duration {
	if n <= 0 || n > g.Amount {
		return unlessNothing(n)
	}
	g.turn(now, notBefore)
	over := g.used + n - g.Amount + min(ahead, latest/2)
	if over <= 0 {
		return g.ref - g.now
	}
	windows := (over - 1) / g.Amount
	over -= windows * g.Amount
	at := g.ref + g.Per // of those that can go now
	for i := g.tail; i < g.next; i++ {
		e := g.entry(i)
		if over -= e.n; over <= 0 {
			at = max(g.ref, e.at+g.Per)
			break
		}
	}
	if windows > int64((latest-at)/g.Per) {
		return Never - 1
	}
	return at + time.Duration(windows)*g.Per - g.now
}

// Room reports whether c units can go at an instant if n go now.
func (g *Log) Room(now time.Duration, n int64, at time.Duration, c int64) bool {
	g.turn(now, now)
	if g.ref+g.Per <= at {
		n = 0
	}
	g.refer(max(at, g.ref))
	return g.used+n+c <= g.Amount
}
