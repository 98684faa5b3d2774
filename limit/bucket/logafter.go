package bucket

import "time"

// After is how long it takes at least until n units can go, not before notBefore, if so many
// others go before them: each goes when what went a window before it counts no more.
func (g *Log) After(now, notBefore time.Duration, ahead, n int64) time.Duration {
	if n <= 0 || n > g.Amount {
		return unlessNothing(n)
	}
	g.turn(now, notBefore)
	// The last of so many units goes as many whole windows after one of the first window's units as fit
	// between them; that one goes when enough of what counts now has left, which may be more than the amount.
	all := n + min(ahead, latest/2)
	windows := (all - 1) / g.Amount
	at := g.earliest(g.ref, all-windows*g.Amount)
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
