package bucket

import "time"

// After returns the least time until n units can be used, not before notBefore, if ahead units are used before them.
// Each unit waits until the unit one window before it no longer counts.
func (g *Log) After(now, notBefore time.Duration, ahead, n int64) time.Duration {
	if n <= 0 || n > g.Amount {
		return unlessNothing(n)
	}
	g.turn(now, notBefore)
	// The last of the units is used a whole number of windows after a unit of the first window. That unit is used
	// when enough of the present usage has left, which may be more than the amount.
	all := n + min(ahead, latest/2)
	windows := (all - 1) / g.Amount
	at := g.earliest(g.ref, all-windows*g.Amount)
	if windows > int64((latest-at)/g.Per) {
		return Never - 1
	}
	return at + time.Duration(windows)*g.Per - g.now
}

// Room reports whether c units can be used at an instant if n are used now.
func (g *Log) Room(now time.Duration, n int64, at time.Duration, c int64) bool {
	g.turn(now, now)
	if g.ref+g.Per <= at {
		n = 0
	}
	g.refer(max(at, g.ref))
	return g.used+n+c <= g.Amount
}
