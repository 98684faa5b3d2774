package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// standby is a block of a calendar window that is kept for an outage of the store: units that are granted,
// charged and valid until the reset. The process uses them while a part lasts. The block is not much larger
// than the usage in the window so far, so a crash loses no more than that. It is guarded by Group.own.
type standby struct {
	left  int64  // units with a mark
	until expiry // their expiry
	mark  Mark   // of the last of them

	// Units from a repeat have no mark and cannot be returned.
	loose      int64
	looseUntil expiry

	win   int64         // the start of the window of used, in microseconds of the store's clock
	used  int64         // units used in that window
	rate  float64       // average units per second, as of at
	at    time.Duration // when the rate was last updated
	begun time.Duration // since when rate has been measured
	share int64         // remaining units of a share, if one is in use
	lent  int           // the use to which share belongs
}

// stands returns how many units are available now.
func (p *lease) stands(now time.Duration, s *spec, u ownUse) int64 {
	b := &p.own.standby
	left := b.all(now, p.group.fleet.clock)
	if u.mode != sharing {
		return left
	}
	p.lend(now, s, u)
	return left + b.share
}

// marked returns how many units have a mark, so that they can be returned to the store.
func (b *standby) marked(now time.Duration, c clock.Clock) int64 {
	if b.left == 0 || b.until.passed(now, c) {
		return 0
	}
	return b.left
}

// unmarked returns how many units came from a repeat. They are used or lost.
func (b *standby) unmarked(now time.Duration, c clock.Clock) int64 {
	if b.loose == 0 || b.looseUntil.passed(now, c) {
		return 0
	}
	return b.loose
}

// all returns the sum of both.
func (b *standby) all(now time.Duration, c clock.Clock) int64 {
	return b.marked(now, c) + b.unmarked(now, c)
}

// lend sets the share of the window's quota, from the known remaining units.
func (p *lease) lend(now time.Duration, s *spec, u ownUse) {
	b := &p.own.standby
	at := p.group.fleet.storeTime(now)
	start := s.limit.Windows(at).Start.UnixMicro()
	if b.lent == u.key && b.win == start {
		return
	}
	left := s.rule.Amount
	if seen := p.sight(); seen.known && at.Before(seen.end) {
		left = seen.grant.Left
	}
	if p.blank(s.limit.Windows(at).Start) {
		left = 0
	}
	p.turnStandby(start)
	b.lent, b.share = u.key, partDown(left, u.part)
}

// turnStandby begins another window.
func (p *lease) turnStandby(start int64) {
	if b := &p.own.standby; b.win != start {
		b.win, b.used, b.share = start, 0, 0
	}
}

// takeStandby takes standby units, or units of a share of the quota if one is configured. Their turn records
// the source, so that they return to it.
func (p *lease) takeStandby(now time.Duration, u ownUse, n int64) limit.Turn {
	b := &p.own.standby
	b.used += n
	// The share is spent first. Standby units are charged already and return to the store if they are not
	// needed.
	if k := min(n, b.share); k > 0 && u.mode == sharing {
		b.share -= k
		b.draw(now, n-k, p.group.fleet.clock)
		t := ownTurn(b.lent, n)
		t.Place = -b.win // negative: not an instant of a use, if the limit changes its shape
		return t
	}
	t := limit.Turn{Turn: bucket.Turn{Low: b.mark.At, Place: b.mark.Level, Cost: n}}
	if b.draw(now, n, p.group.fleet.clock) > 0 {
		t.Low, t.Place = 0, b.looseTurn()
	}
	return t
}

// draw takes units, marked ones first, and returns how many had no mark.
func (b *standby) draw(now time.Duration, n int64, c clock.Clock) (loose int64) {
	loose = n - min(n, b.marked(now, c))
	b.left, b.loose = b.left-(n-loose), b.loose-loose
	return loose
}

// looseTurn returns the place of a turn that contains units without a mark. Marks of a store are not negative.
func (b *standby) looseTurn() int64 { return min(-1, -int64(b.looseUntil.at)) }

// isLoose reports whether the turn contains units without a mark from the window of the standby units.
func (b *standby) isLoose(now time.Duration, t limit.Turn, c clock.Clock) bool {
	return t.Low == 0 && t.Place == b.looseTurn() && !b.looseUntil.passed(now, c)
}

// ownLate returns how late a call may wake and still use units taken without the store. Like leased units, they
// are used at most hold late: units of a rolling limit count for that much longer, and a process's part is of a
// bucket from which the store withholds what accrues during a hold.
func (s *spec) ownLate() time.Duration {
	if s.rule.Shape == limit.Calendar {
		return longestOwnLate
	}
	return min(longestOwnLate, s.hold)
}

const longestOwnLate = 100 * time.Millisecond

// counts returns for how long units of a rolling limit count that were taken without the store.
func (s *spec) counts() time.Duration { return windowOf(&s.limit).Per + s.ownLate() }

// ends returns the expiry of units taken without the store. Standby units and units of a share expire with
// their calendar window.
func (p *lease) ends(now time.Duration, t limit.Turn) expiry {
	s, f := p.spec(), p.group.fleet
	by := noExpiry
	if isOwn(t) {
		by.at = now + s.ownLate()
	}
	switch {
	case s.rule.Shape != limit.Calendar || t.Cost == 0:
		return by
	case isOwn(t):
		at := f.storeTime(now)
		return by.first(expiry{at: now + s.limit.Windows(at).End.Sub(at)})
	}
	if t.Low == 0 {
		return p.own.standby.looseUntil
	}
	return p.own.standby.until
}

// standsAgain puts units of the window back into the standby if the store does not respond. It reports whether
// it did.
func (p *lease) standsAgain(now time.Duration, t limit.Turn, n int64) bool {
	if p.spec().rule.Shape != limit.Calendar || !p.alone(now) {
		return false
	}
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	switch c := p.group.fleet.clock; {
	case b.isLoose(now, t, c):
		b.loose += n
	case b.mark.At == t.Low && !b.until.passed(now, c):
		b.left += n
	default:
		return false
	}
	b.used = max(0, b.used-n)
	p.group.fleet.spent.Add(-n)
	p.group.wants(now, p.spec(), -n)
	return true
}

// uses records units of a calendar limit that count as used.
func (p *lease) uses(now time.Duration, start, n int64) {
	p.turnStandby(start)
	b := &p.own.standby
	if b.begun == 0 {
		b.begun = now
	}
	span := p.group.fleet.standbyFor().Seconds()
	// An exponential average over the time for which the standby lasts.
	b.rate = b.rate*math.Exp(-(now-b.at).Seconds()/span) + float64(n)/span
	b.at = now
	b.used += n
}

// wants returns how many units to add to the standby; negative means too many. The target is the units that
// will be used in standbyFor, but at most the units used in this window, and at most half of this process's
// part of the remaining units. A process with little usage keeps the units for youngSpan, if they do not exceed
// an even distribution of the remaining units over the rest of the window.
func (p *lease) wants(now time.Duration, s *spec) int64 {
	if s.rule.Shape != limit.Calendar {
		return 0
	}
	seen := p.sight()
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	if !seen.known || b.win != seen.start.UnixMicro() || p.group.standing.part == 0 {
		return 0
	}
	f := p.group.fleet
	span := f.standbyFor()
	// A rate that was measured for a shorter time than its time constant is proportionally too low.
	lately := b.rate * math.Exp(-(now-b.at).Seconds()/span.Seconds()) / (1 - math.Exp(-max(now-b.begun, noteLeast).Seconds()/span.Seconds()))
	part := partDown(seen.grant.Left, p.group.standing.part)
	even := float64(part) * min(1, span.Seconds()/max(1, seen.end.Sub(f.storeTime(now)).Seconds()))
	n := min(int64(lately*span.Seconds()), max(b.used, int64(min(lately*youngSpan.Seconds(), even))), part/2)
	return n - b.all(now, f.clock)
}

const (
	// noteLeast is the least time over which a rate of use is estimated.
	noteLeast = 3 * time.Second

	// youngSpan is how long the standby of a process lasts that has used fewer units than that.
	youngSpan = 30 * time.Second
)

// stock returns how many standby units there are.
func (p *lease) stock(now time.Duration) int64 {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	return p.own.standby.all(now, p.group.fleet.clock)
}

// keepBy adds units of a calendar window to the standby.
func (p *lease) keepBy(now time.Duration, n int64, until expiry, m Mark) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	p.turnOwn(now, p.spec(), p.group.standing.use(now))
	if m == (Mark{}) {
		b.keepLoose(now, n, until, p.group.fleet.clock)
		return
	}
	if b.mark.At != m.At || b.until.passed(now, p.group.fleet.clock) {
		b.left = 0 // of another window
	}
	b.left, b.until, b.mark = b.left+n, until, m
	p.group.isActive(p)
}

// keepLoose adds units without a mark. They expire with the first of their windows.
func (b *standby) keepLoose(now time.Duration, n int64, until expiry, c clock.Clock) {
	switch {
	case until.passed(now, c):
	case b.unmarked(now, c) == 0:
		b.loose, b.looseUntil = n, until
	default:
		b.loose += n
	}
}

// standsBy reports whether there are standby units that can be returned.
func (p *lease) standsBy(now time.Duration) bool {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	return b.left > 0 && !b.until.passed(now, p.group.fleet.clock)
}

// release returns the settlement of unneeded standby units. If all is set, all units are unneeded. Otherwise
// the excess must be more than a quarter of the standby to be worth a request.
func (p *lease) release(now time.Duration, s *spec, all bool) (Settlement, bool) {
	if s.rule.Shape == limit.Rolling {
		return p.releaseReserve(now, s, all)
	}
	over := -p.wants(now, s)
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	if b.left == 0 || b.until.passed(now, p.group.fleet.clock) {
		return Settlement{}, false
	}
	if all {
		over = b.left
	} else if over*4 <= b.left {
		return Settlement{}, false
	}
	over = min(over, b.left)
	b.left -= over
	return Settlement{Back: over, Mark: b.mark}, true
}

// spareable returns how many units reserved for an outage the store would take back immediately.
func (p *lease) spareable(now time.Duration) (n int64) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	switch p.spec().rule.Shape {
	case limit.Calendar:
		n = p.own.standby.marked(now, p.group.fleet.clock)
	case limit.Rolling:
		if u := p.group.standing.use(now); u.key == 0 {
			n = p.turnReserve(now, u).returnable()
		}
	}
	return n
}

// spares returns units reserved for an outage if the store has too few left for a call, and reports whether it
// did.
func (p *lease) spares(now time.Duration, s *spec, cost int64) (returned bool) {
	if s.rule.Shape == limit.Bucket {
		return false
	}
	seen, there := p.sight(), p.spareable(now)
	if !seen.known || seen.grant.Left >= cost || seen.grant.Left+there < cost {
		return false
	}
	if s.rule.Shape == limit.Rolling { // a quarter, so that most of the remaining units stay reserved
		for n := max(cost-max(0, seen.grant.Left), (there+3)/4); n > 0; {
			back, ok := p.takeReserved(now, n)
			if !ok {
				return returned
			}
			p.settle(now, back)
			n, returned = n-back.Back, true
		}
		return returned
	}
	for back, ok := p.release(now, s, true); ok; back, ok = p.release(now, s, true) {
		p.settle(now, back)
		returned = true
	}
	return returned
}

// turnQuota returns the standby units of a limit that has other windows or a smaller amount. They may be too
// many for it.
func (p *lease) turnQuota(now time.Duration, s *spec) {
	o, next := &p.own, amounts{s.rule.Amount, s.limit.Every, s.limit.Zone}
	old := o.quota
	if o.quota = next; old.amount == 0 || old.every == next.every && old.zone == next.zone && old.amount <= next.amount {
		return
	}
	if b := &o.standby; b.left > 0 {
		p.settle(now, Settlement{Back: b.left, Mark: b.mark})
	}
	o.standby.left, o.standby.loose, o.standby.mark = 0, 0, Mark{}
}

// standbyLeast is how long the standby of a quota lasts at the recent rate, at least.
const standbyLeast = 5 * time.Minute

// standbyFor returns how long the standby of a quota lasts at the recent rate. Unlike a part it needs no
// reservation: its units are charged, so it may outlast Options.Outage.
func (f *Fleet) standbyFor() time.Duration { return max(f.o.Outage, standbyLeast) }
