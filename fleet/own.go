package fleet

import (
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// own is the units that a lease has for use without the store, from this process's part or a configured share.
// It is guarded by Group.own.
//
//   - A bucket's tokens begin at 0 when the use begins, accrue at the part of the rate, and are at
//     most the part of the burst. They are not reported later, because the store granted that
//     much less.
//   - Of a rolling limit, this process spends in a window at most the smallest part that it held
//     during it. In the first window of a use there is a second bound: the units that the store had
//     granted to it and that have left the window since. The store counted those when it granted
//     the rest to other processes. Spent units are debts.
//   - A calendar limit has no parts. It has a standby block: units that the store has granted and
//     charged, valid until the reset.
type own struct {
	made   bool          // shape is known
	shape  limit.Shape   // of the limit at its last use
	turned time.Duration // when the shape last changed

	// For shape Bucket. Weights are by the limit's meter.
	key   int   // of the use to which the tokens belong, as ownUse.key; 0 if there was none
	z     int64 // until when tokens have accrued, by the use's supply clock
	level int64 // the available weight; negative if more was used
	unit  int64 // the weight of a unit

	// For shape Rolling, in units.
	since int64  // spent in this use
	spent counts // spent units that still count in the window
	had   counts // granted by the store, until they have left its window
	debt  int64  // spent units that are not reported yet
	window
	reserve reserve

	standby standby
	quota   amounts
}

// An amounts is the amount and the windows of a calendar limit.
type amounts struct {
	amount int64
	every  bucket.Period
	zone   string
}

// An allowance is the answer whether units can be taken without the store.
type allowance struct {
	wait time.Duration // until they can; 0 means now, bucket.Never not at all
	lack limit.Lack    // the reason if they never can
}

// allows returns whether n units can be taken after the calls ahead have taken theirs.
func (p *lease) allows(now time.Duration, u ownUse, ahead, n int64) allowance {
	if n == 0 {
		return allowance{}
	}
	if p.passing {
		return allowance{bucket.Never, limit.LacksStore}
	}
	s := p.spec()
	p.turnOwn(now, s, u)
	switch s.rule.Shape {
	case limit.Bucket:
		return p.allowsTokens(s, u, ahead, n)
	case limit.Rolling:
		return p.allowsRolling(now, s, u, ahead, n)
	}
	if p.stands(now, s, u) < ahead+n {
		return allowance{bucket.Never, limit.LacksQuota}
	}
	return allowance{}
}

// takeOwn takes units that are allowed, and counts them as spent without the store. The turn identifies the
// use, so that the units cannot return to another use.
func (p *lease) takeOwn(now time.Duration, u ownUse, n int64) limit.Turn {
	if n == 0 {
		return limit.Turn{}
	}
	f, s := p.group.fleet, p.spec()
	f.spent.Add(n)
	if s.rule.Shape != limit.Calendar { // standby units are charged already
		p.group.partUsed()
	}
	switch s.rule.Shape {
	case limit.Bucket:
		p.own.level -= n * p.own.unit
	case limit.Rolling:
		p.spend(now, s, n)
	default:
		return p.takeStandby(now, u, n)
	}
	// The turn contains the time at which its units were taken, so that returned units are removed where they
	// were counted.
	t := ownTurn(u.key, n)
	t.Place = int64(now)
	return t
}

// ownTurn returns the turn of units that no store has granted. Low of a store's marks is never negative.
func ownTurn(key int, n int64) limit.Turn {
	return limit.Turn{Turn: bucket.Turn{Low: -int64(key), Cost: n}}
}

// isOwn reports whether no store has granted the units of the turn.
func isOwn(t limit.Turn) bool { return t.Low < 0 }

// drawOwn takes n units without the store, if the process serves calls that way, and returns their expiry.
func (p *lease) drawOwn(now time.Duration, n int64) (limit.Turn, expiry, bool) {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	// An exchange has failed, and the silence is not over. Standby units of a calendar limit can be used
	// already, since they are charged. Parts of other limits cannot, since the store may still grant them to
	// other processes.
	if !u.mode.uses() && (p.spec().rule.Shape != limit.Calendar || !g.failing.Load()) {
		return limit.Turn{}, noExpiry, false
	}
	if a := p.allows(now, u, 0, n); a.wait > 0 || a.lack != limit.LacksNothing {
		return limit.Turn{}, noExpiry, false
	}
	g.wants(now, p.spec(), n)
	t := p.takeOwn(now, u, n)
	return t, p.ends(now, t), true
}

// took records a grant of the store, and how many of its units count as used.
func (p *lease) took(sent, now time.Duration, s *spec, granted, used int64) {
	if granted == 0 {
		return
	}
	start := p.sight().start
	p.tookShare(now, s, start.UnixMicro(), granted)
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	g.wants(now, s, used)
	switch s.rule.Shape {
	case limit.Rolling:
		p.hasHad(sent, now, s, used) // reserved units are not used
	case limit.Calendar:
		p.uses(now, start.UnixMicro(), used)
	}
}

// backOwn returns units that were not used. Units of an earlier use are lost.
func (p *lease) backOwn(now time.Duration, t limit.Turn, n int64) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	u := p.group.standing.use(now)
	s := p.spec()
	// Units of a quota's share return to the share, in the same window.
	if b := &p.own.standby; s.rule.Shape == limit.Calendar && b.lent == int(-t.Low) && b.win == -t.Place {
		b.share += n
		p.group.fleet.spent.Add(-n)
		p.group.wants(now, s, -n)
		return
	}
	if p.turnOwn(now, s, u); int(-t.Low) != u.key || p.own.key != u.key || time.Duration(t.Place) < p.own.turned {
		return
	}
	p.group.fleet.spent.Add(-n)
	p.group.wants(now, s, -n)
	switch s.rule.Shape {
	case limit.Bucket:
		top := p.tokens(s, u)
		p.own.level = min(top, p.own.level+timesMost(n, p.own.unit))
	case limit.Rolling:
		p.unspend(time.Duration(t.Place)+s.counts(), n)
	}
}

// oweOwn charges units that were used beyond those taken. It reports false if they must be reported to the
// store.
func (p *lease) oweOwn(now time.Duration, n int64) bool {
	if p.passing || now <= time.Duration(p.group.lone.Load()) {
		return false
	}
	p.group.own.Lock()
	defer p.group.own.Unlock()
	u := p.group.standing.use(now)
	if !u.mode.uses() {
		return false
	}
	s := p.spec()
	p.turnOwn(now, s, u)
	if s.rule.Shape != limit.Calendar {
		p.group.partUsed()
	}
	switch s.rule.Shape {
	case limit.Bucket:
		top := p.tokens(s, u)
		p.own.level = max(p.own.level-timesMost(n, p.own.unit), -bucket.LongestDebt*max(top, p.own.unit))
	case limit.Rolling:
		p.spend(now, s, n)
	default:
		return false
	}
	return true
}

// keepsOwn reports whether dropping the lease would lose state: spent units of a window, debts, or the tokens
// of a use.
func (p *lease) keepsOwn(now time.Duration) bool {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	o, u := &p.own, p.group.standing.use(now)
	p.turnOwn(now, p.spec(), u)
	o.spent.drop(now)
	o.had.drop(now)
	if p.turnReserve(now, u).charged(now) > 0 {
		return true
	}
	return o.key != 0 && o.key == u.key || o.spent.sum+o.had.sum+o.debt > 0 ||
		o.standby.all(now, p.group.fleet.clock) > 0
}

// tokens accrues tokens up to the instant of the use's supply clock, and returns the largest weight: the part
// of the burst.
func (p *lease) tokens(s *spec, u ownUse) (top int64) {
	m, o := &s.rule.Meter, &p.own
	top = partDown(m.Cap, u.part)
	switch {
	// A new use begins with no tokens. The remaining ones of the previous use are worthless.
	case o.key != u.key || o.unit == 0:
		o.key, o.z, o.level, o.unit = u.key, 0, 0, m.Unit
		if p.begin.empty && p.begin.from > u.began { // earlier tokens belong to another limit
			o.z = u.z
		}
	case o.unit != m.Unit: // the limit has changed: accrued tokens are lost, debts are not
		o.z, o.level, o.unit = u.z, -timesMost((max(0, -o.level)+o.unit-1)/o.unit, m.Unit), m.Unit
	}
	if room := top - o.level; room > 0 {
		o.level += min(room, m.Drains(max(0, u.z-o.z)))
	}
	o.level, o.z = min(o.level, top), u.z
	return top
}

// ownLeft returns how many units can be taken now, and the time until the largest possible number is available.
func (p *lease) ownLeft(now time.Duration, s *spec, u ownUse) (left int64, reset time.Duration) {
	switch m := &s.rule.Meter; s.rule.Shape {
	case limit.Bucket:
		top := p.tokens(s, u)
		lacks := max(0, top-p.own.level)
		return max(0, p.own.level) / m.Unit, micros(scaleUp((lacks+m.Drain-1)/m.Drain, Whole, max(1, u.part)))
	case limit.Rolling:
		left = max(0, p.roomRolling(now, s, u))
		if left < partDown(s.rule.Amount, u.part) {
			_, reset = s.stay()
		}
		return left, reset
	}
	return p.stands(now, s, u), 0
}

// allowsTokens is allows for a bucket. Tokens accrue at the part of the rate, up to the part of the burst.
func (p *lease) allowsTokens(s *spec, u ownUse, ahead, n int64) allowance {
	m, top := &s.rule.Meter, p.tokens(s, u)
	if n > top/m.Unit {
		return allowance{bucket.Never, limit.LacksPart}
	}
	lacks := timesMost(addMost(ahead, n), m.Unit) - p.own.level
	if lacks <= 0 {
		return allowance{}
	}
	us := (lacks-1)/m.Drain + 1 // by the use's supply clock
	return allowance{wait: micros(max(1, scaleUp(us, Whole, u.part)))}
}

// addMost returns a+b, but at most most62. No argument is negative, here and below.
func addMost(a, b int64) int64 { return min(a, most62-min(b, most62)) + min(b, most62) }

// timesMost returns a*b, but at most most62.
func timesMost(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < most62 {
		return int64(lo)
	}
	return most62
}

// scaleUp returns a*b/c, rounded up, but at most most62. c is not 0.
func scaleUp(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi >= uint64(c) {
		return most62
	}
	q, r := bits.Div64(hi, lo, uint64(c))
	if r > 0 {
		q++
	}
	return int64(min(q, most62))
}

// most62 bounds addMost, timesMost and scaleUp. Two such values can be added without overflow.
const most62 = 1 << 62
