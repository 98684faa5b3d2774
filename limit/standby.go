package limit

import (
	"math"
	"time"
)

// standby is a block of a calendar window that is kept for when the store is away: units
// that it has granted and charged, and that are good until the reset. It is what this
// process uses while a part lives, but no more than it has used in the window already, so
// that a crash loses no more than that.
type standby struct {
	left  int64
	until expiry
	mark  Mark

	win   int64   // the begin of the window that used counts in
	used  int64   // units
	rate  float64 // units a second, over the time that a part lives
	at    time.Duration
	begun time.Duration
	share int64 // what is left of a share, where one is used
	lent  int   // the use that it is for
}

// stands is how much there is now.
func (p *pool) stands(now time.Duration, s *spec, u ownUse) int64 {
	b := &p.own.standby
	left := b.left
	if b.until.passed(now, p.group.fleet.clock) {
		left = 0
	}
	if u.mode != sharing {
		return left
	}
	p.lend(now, s, u)
	return left + b.share
}

// lend sets what a share of the window's quota is, as far as it is known what is left.
func (p *pool) lend(now time.Duration, s *spec, u ownUse) {
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
func (p *pool) turnStandby(start int64) {
	if b := &p.own.standby; b.win != start {
		b.win, b.used, b.share = start, 0, 0
	}
}

func (p *pool) takeStandby(u ownUse, n int64) Turn {
	b := &p.own.standby
	b.used += n
	if k := min(n, b.share); k > 0 && u.mode == sharing {
		b.share -= k
		b.left -= n - k
		t := ownTurn(b.lent, n)
		t.Place = -b.win // below 0: no instant of a use, should the limit get another shape
		return t
	}
	b.left -= n
	var t Turn
	t.Low, t.Place, t.Cost = b.mark.At, b.mark.Level, n
	return t
}

// ends is before when units must be used that are this process's own: what stood by, or is a share, in
// the calendar window that it is of.
func (p *pool) ends(now time.Duration, t Turn) expiry {
	s, f := p.spec.Load(), p.group.fleet
	by := noExpiry
	if isOwn(t) {
		by.at = now + mostLate
	}
	switch {
	case s.rule.Shape != Fixed || t.Cost == 0:
		return by
	case isOwn(t):
		at := f.storeTime(now)
		return by.first(expiry{at: now + s.limit.Windows(at).End.Sub(at)})
	}
	return p.own.standby.until
}

// standsAgain puts units of the window back to those that stand by, if they are needed
// there: the store does not answer. It reports whether they were.
func (p *pool) standsAgain(now time.Duration, t Turn, n int64) bool {
	if p.spec.Load().rule.Shape != Fixed || !p.alone(now) {
		return false
	}
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	if b.mark.At != t.Low || b.until.passed(now, p.group.fleet.clock) {
		return false
	}
	b.left += n
	b.used = max(0, b.used-n)
	p.group.fleet.spent.Add(-n)
	p.group.wants(now, p.spec.Load(), -n)
	return true
}

// uses notes that units of a calendar limit were as good as used.
func (p *pool) uses(now time.Duration, start, n int64) {
	p.turnStandby(start)
	b := &p.own.standby
	if b.begun == 0 {
		b.begun = now
	}
	life := p.group.fleet.o.Outage.Seconds()
	b.rate = b.rate*math.Exp(-(now-b.at).Seconds()/life) + float64(n)/life
	b.at = now
	b.used += n
}

// wants is how many units more should stand by.
func (p *pool) wants(now time.Duration, s *spec) int64 {
	if s.rule.Shape != Fixed {
		return 0
	}
	seen := p.sight()
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	if !seen.known || b.win != seen.start.UnixMicro() || p.group.standing.part == 0 {
		return 0
	}
	life := p.group.fleet.o.Outage.Seconds()
	lately := b.rate * math.Exp(-(now-b.at).Seconds()/life) / max(1-math.Exp(-(now-b.begun).Seconds()/life), 1e-3)
	n := int64(lately * life)
	n = min(n, b.used, partDown(seen.grant.Left, p.group.standing.part)/2)
	if b.until.passed(now, p.group.fleet.clock) {
		return n
	}
	return n - b.left
}

// keepBy lets units of a calendar window stand by.
func (p *pool) keepBy(now time.Duration, n int64, until expiry, m Mark) {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	p.turnOwn(now, p.spec.Load(), p.group.standing.use(now))
	if b.mark.At != m.At || b.until.passed(now, p.group.fleet.clock) {
		b.left = 0 // of another window
	}
	b.left, b.until, b.mark = b.left+n, until, m
	p.group.isActive(p)
}

// standsBy reports whether something stands by.
func (p *pool) standsBy(now time.Duration) bool {
	p.group.own.Lock()
	defer p.group.own.Unlock()
	b := &p.own.standby
	return b.left > 0 && !b.until.passed(now, p.group.fleet.clock)
}

// release gives back what need not stand by any more, and all of it if all is set.
func (p *pool) release(now time.Duration, s *spec, all bool) (Settlement, bool) {
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

// turnQuota gives back what stands by of a limit that has got other windows, or a smaller amount: of
// those it may be too much.
func (p *pool) turnQuota(now time.Duration, s *spec) {
	o, next := &p.own, amounts{s.rule.Amount, s.limit.Every, s.limit.Zone}
	old := o.quota
	if o.quota = next; old.amount == 0 || old.every == next.every && old.zone == next.zone && old.amount <= next.amount {
		return
	}
	if b := &o.standby; b.left > 0 {
		p.settle(now, Settlement{Back: b.left, Mark: b.mark})
		b.left, b.mark = 0, Mark{}
	}
}
