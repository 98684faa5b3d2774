package fleet

import (
	"math/bits"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// own is what a lease has of the part that this process uses without the store, or of a
// share. It is guarded by Group.own.
//
//   - A bucket's tokens begin at 0 with the use, come at the part of the rate, and are at
//     most the part of the burst. Nothing of it is told later: the store gave that much
//     less.
//   - Of a rolling limit, what this process spends in a window is at most the least part
//     that it held during it. Until a window after the use began, it is besides at most what
//     the store had granted to it and has left the window since: the store counted that
//     when it gave the rest to others. What was spent is owed.
//   - A calendar limit has no parts. A block of it stands by: units that the store has
//     granted and charged, good until the reset.
type own struct {
	made   bool          // shape is known
	shape  limit.Shape   // of the limit when it was used last
	turned time.Duration // when that became another

	// Of shape Bucket. Weights are those of the limit's meter.
	key   int   // of the use that the tokens are of, as ownUse.key; 0 if there was none
	z     int64 // up to when tokens have come, by the use's own supply clock
	level int64 // the weight that is there; below 0 if more was used than there was
	unit  int64 // the weight of a unit

	// Of shape Rolling, in units.
	since int64  // spent in this use
	spent counts // that count in the window
	had   counts // granted by the store, until after they have left its window
	debt  int64  // of what was spent, not told to the store yet
	window
	reserve reserve

	standby standby
	quota   amounts
}

// An amounts is a calendar limit's amount and windows.
type amounts struct {
	amount int64
	every  bucket.Period
	zone   string
}

// An allowance is whether units can be taken from what a process has itself.
type allowance struct {
	wait time.Duration // until they can; 0 if now, bucket.Never if not at all
	lack limit.Lack    // why never
}

// allows is whether n units can be taken after those who are ahead have taken theirs.
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

// takeOwn takes units that are allowed, and counts them as let go without the store. The turn knows of which use they
// are, so that they come back to no other.
func (p *lease) takeOwn(now time.Duration, u ownUse, n int64) limit.Turn {
	if n == 0 {
		return limit.Turn{}
	}
	f, s := p.group.fleet, p.spec()
	f.spent.Add(n)
	if s.rule.Shape != limit.Calendar { // what stands by is charged already
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
	// A turn knows when its units were taken: what came back of them leaves the window then.
	t := ownTurn(u.key, n)
	t.Place = int64(now)
	return t
}

// ownTurn is the turn of units that no store has granted. A store's marks are not below 0.
func ownTurn(key int, n int64) limit.Turn {
	return limit.Turn{Turn: bucket.Turn{Low: -int64(key), Cost: n}}
}

// isOwn reports whether the units of a turn are ones that no store has granted.
func isOwn(t limit.Turn) bool { return t.Low < 0 }

// drawOwn takes n units from what this process has itself, if it goes on without the store,
// and says before when they must be used.
func (p *lease) drawOwn(now time.Duration, n int64) (limit.Turn, expiry, bool) {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	// A call has failed, and the silence is not over: of a calendar limit what stands by can be used at once, as it is charged.
	// Of others the store may still grant to all what this process would use.
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

// took notes what a store has granted, and how much of that is as good as used.
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
		p.hasHad(sent, now, s, used) // what is reserved is not used
	case limit.Calendar:
		p.uses(now, start.UnixMicro(), used)
	}
}

// backOwn puts back units that were not used. Those of a use that is over are gone.
func (p *lease) backOwn(now time.Duration, t limit.Turn, n int64) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	u := p.group.standing.use(now)
	s := p.spec()
	// Of a share of a quota: it comes back to the share, in the same window.
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
		p.unspend(time.Duration(t.Place)+windowOf(&s.limit).Per, n)
	}
}

// oweOwn charges units that were used beyond what was taken. It reports false if the
// store has to be told.
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

// keepsOwn reports whether something would be lost by forgetting the lease: what was spent of a window, debts, and
// the tokens of a use, which would begin anew.
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

// tokens lets tokens come up to the instant of the use's supply clock, and returns how much weight there can be: the
// part of the burst.
func (p *lease) tokens(s *spec, u ownUse) (top int64) {
	m, o := &s.rule.Meter, &p.own
	top = partDown(m.Cap, u.part)
	switch {
	// Another use begins with nothing: what was left of the last one is worth nothing.
	case o.key != u.key || o.unit == 0:
		o.key, o.z, o.level, o.unit = u.key, 0, 0, m.Unit
		if p.begin.empty && p.begin.from > u.began { // what came before is another limit's
			o.z = u.z
		}
	case o.unit != m.Unit: // the limit was changed: what had come is gone, what is owed is not
		o.z, o.level, o.unit = u.z, -timesMost((max(0, -o.level)+o.unit-1)/o.unit, m.Unit), m.Unit
	}
	if room := top - o.level; room > 0 {
		o.level += min(room, m.Drains(max(0, u.z-o.z)))
	}
	o.level, o.z = min(o.level, top), u.z
	return top
}

// ownLeft is how many units can be taken now, and when there are as many as there can be.
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

// allowsTokens is allows for a bucket: tokens come at the part of the rate, up to the part of the burst.
func (p *lease) allowsTokens(s *spec, u ownUse, ahead, n int64) allowance {
	m, top := &s.rule.Meter, p.tokens(s, u)
	if n > top/m.Unit {
		return allowance{bucket.Never, limit.LacksPart}
	}
	lacks := timesMost(addMost(ahead, n), m.Unit) - p.own.level
	if lacks <= 0 {
		return allowance{}
	}
	us := (lacks-1)/m.Drain + 1 // of the use's supply clock
	return allowance{wait: micros(max(1, scaleUp(us, Whole, u.part)))}
}

// addMost is a sum that stays at most62 where it is larger. No number is below 0, here and in what follows.
func addMost(a, b int64) int64 { return min(a, most62-min(b, most62)) + min(b, most62) }

// timesMost is a product that stays at most62 where it is larger.
func timesMost(a, b int64) int64 {
	if hi, lo := bits.Mul64(uint64(a), uint64(b)); hi == 0 && lo < most62 {
		return int64(lo)
	}
	return most62
}

// scaleUp is a*b/c, rounded up, that stays at most62 where it is larger; c is not 0.
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

// most62 is what addMost, timesMost and scaleUp stay at: two of them can be added.
const most62 = 1 << 62
