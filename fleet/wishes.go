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

// needs notes the part of a limit that a call needs, and for how long grants hold.
func (g *Group) needs(now time.Duration, s *spec, cost int64) {
	b := &g.beating
	switch s.rule.Shape {
	case limit.Bucket:
		b.need.note(now, partOf(timesMost(cost, s.rule.Meter.Unit), s.rule.Meter.Cap))
	case limit.Rolling:
		b.need.note(now, partOf(cost, s.rule.Amount))
		_, stay := s.stay()
		b.window = max(b.window, stay+s.hold)
	}
	if s.late {
		b.hold.note(now, -int64(s.hold))
	}
}

// partOf is which part n is of all, rounded up and a little more, as what is a part of it is
// rounded down.
func partOf(n, all int64) int64 { return min(Whole, scaleUp(n, Whole, max(1, all))+1) }
