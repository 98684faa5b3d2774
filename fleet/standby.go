package fleet

import (
	"math"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// standby is a block of a calendar window that is kept for when the store is away: units
// that it has granted and charged, and that are good until the reset. It is what this
// process uses while a part lives, but hardly more than it has used in the window already, so
// that a crash loses no more than that.
// It is guarded by Group.own.
type standby struct {
	left  int64  // units with a mark
	until expiry // of them
	mark  Mark   // of the last of them

	// Units that a repeat brought have no mark, and cannot be given back.
	loose      int64
	looseUntil expiry

	win   int64         // the begin of the window that used counts in, in microseconds of the store's clock
	used  int64         // units in it
	rate  float64       // units a second, over the time that a part lives, as of at
	at    time.Duration // when the rate was noted last
	begun time.Duration // since when it is
	share int64         // what is left of a share, where one is used
	lent  int           // the use that it is for
}

// stands is how much there is now.
func (p *lease) stands(now time.Duration, s *spec, u ownUse) int64 {
	b := &p.own.standby
	left := b.all(now, p.group.fleet.clock)
	if u.mode != sharing {
		return left
	}
	p.lend(now, s, u)
	return left + b.share
}

// marked is how many units with a mark stand by: those can be given back to the store.
func (b *standby) marked(now time.Duration, c clock.Clock) int64 {
	if b.left == 0 || b.until.passed(now, c) {
		return 0
	}
	return b.left
}

// unmarked is how many stand by that a repeat brought. They are used, or lost.
func (b *standby) unmarked(now time.Duration, c clock.Clock) int64 {
	if b.loose == 0 || b.looseUntil.passed(now, c) {
		return 0
	}
	return b.loose
}

// all is both.
func (b *standby) all(now time.Duration, c clock.Clock) int64 {
	return b.marked(now, c) + b.unmarked(now, c)
}

// lend sets what a share of the window's quota is, as far as it is known what is left.
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

// takeStandby takes units of what stands by, or of a share of the quota where one is configured. Their turn
// says which: they come back to the same.
func (p *lease) takeStandby(now time.Duration, u ownUse, n int64) limit.Turn {
	b := &p.own.standby
	b.used += n
	// A share is spent first: what stands by is charged already, and comes back to the store if it is not needed.
	if k := min(n, b.share); k > 0 && u.mode == sharing {
		b.share -= k
		b.draw(now, n-k, p.group.fleet.clock)
		t := ownTurn(b.lent, n)
		t.Place = -b.win // below 0: no instant of a use, should the limit get another shape
		return t
	}
	t := limit.Turn{Turn: bucket.Turn{Low: b.mark.At, Place: b.mark.Level, Cost: n}}
	if b.draw(now, n, p.group.fleet.clock) > 0 {
		t.Low, t.Place = 0, b.looseTurn()
	}
	return t
}

// draw takes units, those with a mark first, and returns how many had none.
func (b *standby) draw(now time.Duration, n int64, c clock.Clock) (loose int64) {
	loose = n - min(n, b.marked(now, c))
	b.left, b.loose = b.left-(n-loose), b.loose-loose
	return loose
}

// looseTurn is the place of a turn of which units had no mark: no mark of a store is below 0.
func (b *standby) looseTurn() int64 { return min(-1, -int64(b.looseUntil.at)) }

// isLoose reports whether units of the turn had no mark, and are of the window of those that stand by.
func (b *standby) isLoose(now time.Duration, t limit.Turn, c clock.Clock) bool {
	return t.Low == 0 && t.Place == b.looseTurn() && !b.looseUntil.passed(now, c)
}

// ownLate is how late a call may wake for units that are this process's own, and use them: as late as calls may be
// for their turn in a limit of this process alone.
const ownLate = 100 * time.Millisecond

// ends is before when units must be used that are this process's own: what stood by, or is a share, in
// the calendar window that it is of.
func (p *lease) ends(now time.Duration, t limit.Turn) expiry {
	s, f := p.spec(), p.group.fleet
	by := noExpiry
	if isOwn(t) {
		by.at = now + ownLate
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

// standsAgain puts units of the window back to those that stand by, if they are needed
// there: the store does not answer. It reports whether they were.
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

// uses notes that units of a calendar limit were as good as used.
func (p *lease) uses(now time.Duration, start, n int64) {
	p.turnStandby(start)
	b := &p.own.standby
	if b.begun == 0 {
		b.begun = now
	}
	span := p.group.fleet.standbyFor().Seconds()
	// An average that forgets exponentially, over the time for which a block stands by.
	b.rate = b.rate*math.Exp(-(now-b.at).Seconds()/span) + float64(n)/span
	b.at = now
	b.used += n
}

// wants returns how many units more should stand by, below 0 if fewer: as many as will be used in standbyFor, but no more than
// were used in this window, nor than half of this process's part of what is left of it. A process that has used few has as many
// as it will use in youngSpan, if they are no more than an even spread of what is left over the rest of the window.
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
	// A rate that has been noted for a shorter time than it looks back is as much too low.
	lately := b.rate * math.Exp(-(now-b.at).Seconds()/span.Seconds()) / (1 - math.Exp(-max(now-b.begun, noteLeast).Seconds()/span.Seconds()))
	part := partDown(seen.grant.Left, p.group.standing.part)
	even := float64(part) * min(1, span.Seconds()/max(1, seen.end.Sub(f.storeTime(now)).Seconds()))
	n := min(int64(lately*span.Seconds()), max(b.used, int64(min(lately*youngSpan.Seconds(), even))), part/2)
	return n - b.all(now, f.clock)
}

const (
	// noteLeast is the least time over which a rate of use is estimated.
	noteLeast = 3 * time.Second

	// youngSpan is for how long the block of a process lasts that has used fewer units than that.
	youngSpan = 30 * time.Second
)

// stock is how many units stand by.
func (p *lease) stock(now time.Duration) int64 {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	return p.own.standby.all(now, p.group.fleet.clock)
}

// keepBy lets units of a calendar window stand by.
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

// keepLoose lets units stand by that have no mark, until the first of their windows ends.
func (b *standby) keepLoose(now time.Duration, n int64, until expiry, c clock.Clock) {
	switch {
	case until.passed(now, c):
	case b.unmarked(now, c) == 0:
		b.loose, b.looseUntil = n, until
	default:
		b.loose += n
	}
}

// standsBy reports whether something stands by.
func (p *lease) standsBy(now time.Duration) bool {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	return b.left > 0 && !b.until.passed(now, p.group.fleet.clock)
}

// release is what tells the store of units that need not stand by any more: of all of them if all is set, else of what is too
// much, once that is worth an ask: a quarter of what stands by.
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

// spareable returns how many units are reserved for an outage that the store takes back at once.
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

// spares returns units that are reserved for an outage if the store has too few left for a call, and reports whether it did.
func (p *lease) spares(now time.Duration, s *spec, cost int64) (returned bool) {
	if s.rule.Shape == limit.Bucket {
		return false
	}
	seen, there := p.sight(), p.spareable(now)
	if !seen.known || seen.grant.Left >= cost || seen.grant.Left+there < cost {
		return false
	}
	if s.rule.Shape == limit.Rolling { // a quarter of it, so that most of what is left stays reserved
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

// turnQuota gives back what stands by of a limit that has got other windows, or a smaller amount: of
// those it may be too much.
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

// standbyLeast is for how long a stand-by block of a quota lasts, at least, at the rate of late.
const standbyLeast = 5 * time.Minute

// standbyFor is for how long a stand-by block of a quota lasts at the rate of late. Unlike a part it needs no
// reservation: its units are charged, so it may outlast Options.Outage.
func (f *Fleet) standbyFor() time.Duration { return max(f.o.Outage, standbyLeast) }
