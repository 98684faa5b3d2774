package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// wishMemory is the time constant with which what was wanted is forgotten.
const wishMemory = 10 * time.Second

// lately is the largest value of the last minute or two.
type lately struct {
	since     time.Duration
	now, last int64 // none if there was none
}

// none is no value: less than all that is noted.
const none = math.MinInt64

// newLately has seen nothing yet.
func newLately() lately { return lately{now: none, last: none} }

// note notes a value of the instant.
func (l *lately) note(at time.Duration, n int64) {
	l.turn(at)
	l.now = max(l.now, n)
}

// turn begins another minute if it is time to: what is older than two is forgotten.
func (l *lately) turn(at time.Duration) {
	switch past := at - l.since; {
	case past >= 2*restful:
		l.since, l.last, l.now = at, none, none
	case past >= restful:
		l.since, l.last, l.now = at, l.now, none
	}
}

// most is 0 if there was none.
func (l *lately) most(at time.Duration) int64 {
	if l.turn(at); max(l.now, l.last) == none {
		return 0
	}
	return max(l.now, l.last)
}

// wants notes that this process wanted units of a limit, or, below 0, that it did not after all.
func (g *Group) wants(now time.Duration, s *spec, n int64) {
	b := &g.beating
	b.wish = max(0, b.wishes(now)+float64(n)/max(1e-9, s.perSecond(g.fleet.storeTime(now))))
	b.wishAt, b.usedAt = now, now
}

// wishes is the wish as of the instant: what is older counts less, by half each 7 s.
func (b *beating) wishes(now time.Duration) float64 {
	return b.wish * math.Exp(-(now-b.wishAt).Seconds()/wishMemory.Seconds())
}

// wished is the wish as a beat says it.
func (b *beating) wished(now time.Duration) int64 {
	return int64(min(b.wishes(now)*1e4, mostWish))
}

// needs notes the part of its limits that a call needs, and for how long grants hold. A process asks for the part that its
// cheapest call needs: one expensive call must not take the parts of others, and waits for the store if it does not fit.
func (g *Group) needs(now time.Duration, leases []*lease, costs []int64) {
	b := &g.beating
	var part int64
	for i, p := range leases {
		s := p.spec()
		switch {
		case s.rule.Shape == limit.Rolling:
			_, stay := s.stay()
			b.window = max(b.window, stay+s.hold)
			part = max(part, partOf(costs[i], s.rule.Amount))
		case s.rule.Shape == limit.Bucket:
			part = max(part, partOf(timesMost(costs[i], s.rule.Meter.Unit), s.rule.Meter.Cap))
		}
		if s.late {
			b.hold.note(now, -int64(s.hold))
		}
	}
	if part > 0 {
		b.need.note(now, -part)
	}
}

// partOf is which part n is of all, rounded up and a little more, as what is a part of it is
// rounded down.
func partOf(n, all int64) int64 { return min(Whole, scaleUp(n, Whole, max(1, all))+1) }
