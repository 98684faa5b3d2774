package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/limit"
)

// wishMemory is the time constant of the demand's exponential average.
const wishMemory = 10 * time.Second

// lately is the largest value of the last one to two minutes.
type lately struct {
	since     time.Duration
	now, last int64 // none if there was no value
}

// none means no value. It is less than every value.
const none = math.MinInt64

// newLately returns a lately without values.
func newLately() lately { return lately{now: none, last: none} }

// note records a value at the instant.
func (l *lately) note(at time.Duration, n int64) {
	l.turn(at)
	l.now = max(l.now, n)
}

// turn begins another minute if it is time. Values of more than two minutes ago are dropped.
func (l *lately) turn(at time.Duration) {
	switch past := at - l.since; {
	case past >= 2*restful:
		l.since, l.last, l.now = at, none, none
	case past >= restful:
		l.since, l.last, l.now = at, l.now, none
	}
}

// most returns the largest value, or 0 if there is none.
func (l *lately) most(at time.Duration) int64 {
	if l.turn(at); max(l.now, l.last) == none {
		return 0
	}
	return max(l.now, l.last)
}

// wants records that this process needs units of a limit. A negative n takes that back.
func (g *Group) wants(now time.Duration, s *spec, n int64) {
	b := &g.beating
	b.wish = max(0, b.wishes(now)+float64(n)/max(1e-9, s.perSecond(g.fleet.storeTime(now))))
	b.wishAt, b.usedAt = now, now
}

// wishes returns the demand at the instant. Older demand loses half of its weight in 7 s.
func (b *beating) wishes(now time.Duration) float64 {
	return b.wish * math.Exp(-(now-b.wishAt).Seconds()/wishMemory.Seconds())
}

// wished returns the demand as a heartbeat reports it.
func (b *beating) wished(now time.Duration) int64 {
	return int64(min(b.wishes(now)*1e4, mostWish))
}

// needs records the part of its limits that a call needs, and how long grants are valid. A process requests the
// part that its cheapest call needs. An expensive call must not take the parts of other processes; if it does
// not fit, it waits for the store.
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

// partOf returns which part of all n is, rounded up and a little more, because parts are rounded down.
func partOf(n, all int64) int64 { return min(Whole, scaleUp(n, Whole, max(1, all))+1) }
