package fleet

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A counts is a list of unit counts, each with the time when it expires: not before low, not after high. If
// there are too many, neighbors are merged into a count that lasts as long as both. The zero counts is empty.
type counts struct {
	all []spell // in the order of high
	sum int64   // of all units
}

// A spell is n units that expire at some instant from low to high. Stores count in slots, and clocks drift.
type spell struct {
	low, high time.Duration
	n         int64
}

// mostCounted is the largest number of spells of a key. They take at most 1.5 KB.
const mostCounted = 64

// add counts n units. high must not be before that of earlier units. Spells that are closer than grain are
// merged.
func (t *counts) add(low, high time.Duration, n int64, grain time.Duration) {
	t.sum += n
	if last := len(t.all) - 1; last >= 0 && low-t.all[last].low < grain {
		c := &t.all[last]
		c.low, c.high, c.n = min(c.low, low), max(c.high, high), c.n+n
		return
	}
	t.all = append(t.all, spell{low, high, n})
	if len(t.all) > mostCounted {
		a, b := t.all[0], &t.all[1]
		b.low, b.high, b.n = min(a.low, b.low), max(a.high, b.high), a.n+b.n
		t.all = t.all[1:]
	}
}

// forget drops units that may have expired at the instant.
func (t *counts) forget(at time.Duration) {
	t.all = slices.DeleteFunc(t.all, func(c spell) bool {
		if c.low <= at {
			t.sum -= c.n
		}
		return c.low <= at
	})
}

// shift moves the expiry of all units.
func (t *counts) shift(low, high time.Duration) {
	for i := range t.all {
		t.all[i].low, t.all[i].high = t.all[i].low+low, t.all[i].high+high
	}
}

// drop drops units that have expired at the instant.
func (t *counts) drop(at time.Duration) {
	n := 0
	for n < len(t.all) && t.all[n].high <= at {
		t.sum -= t.all[n].n
		n++
	}
	t.all = t.all[:copy(t.all, t.all[n:])]
}

// left returns how many units count at from and have expired at to.
func (t *counts) left(from, to time.Duration) (n int64) {
	for _, c := range t.all {
		if c.low > from && c.high <= to {
			n += c.n
		}
	}
	return n
}

// next returns the next instant at which units have expired.
func (t *counts) next(now time.Duration) time.Duration {
	for _, c := range t.all {
		if c.high > now {
			return c.high
		}
	}
	return bucket.Never
}

// removeAround removes n units that may expire between two instants. It removes them from each spell that may
// contain them, since it is unknown which one does. Returned units must not count as having left the store's
// window later.
func (t *counts) removeAround(from, to time.Duration, n int64) {
	for i := range t.all {
		if c := &t.all[i]; c.low <= to && c.high >= from {
			k := min(n, c.n)
			c.n -= k
			t.sum -= k
		}
	}
}

// removeAt removes n units that expire at an instant, from the oldest spells that may contain them.
func (t *counts) removeAt(at time.Duration, n int64) {
	for i := range t.all {
		if c := &t.all[i]; c.low <= at && c.high >= at {
			k := min(n, c.n)
			c.n -= k
			t.sum, n = t.sum-k, n-k
		}
	}
}

// stay returns how long granted units stay in the store's window, at least and at most, by a clock that may
// drift.
func (s *spec) stay() (least, most time.Duration) {
	least = time.Duration(s.rule.Ring.Window()) * time.Microsecond
	most = least + time.Duration(s.rule.Ring.Grain)*time.Microsecond
	return least - slack(least), most + slack(most)
}

// turnOwn adapts the state to the limit's shape and window, if those have changed. Spent units stay spent.
// After a change of shape, the complete part counts as spent. The store counts its grants for as long as the
// current window.
func (p *lease) turnOwn(now time.Duration, s *spec, u ownUse) {
	o := &p.own
	if o.made && o.shape != s.rule.Shape {
		o.turned, o.reserve = now, reserve{}
		switch s.rule.Shape {
		case limit.Bucket:
			o.key, o.z, o.level, o.unit = u.key, u.z, 0, s.rule.Meter.Unit
		case limit.Rolling:
			// The times of units spent under the other shape are unknown. All of the part counts as spent now.
			o.spent, o.window = counts{}, window{}
			per := s.counts()
			o.spent.add(now+per, now+per+slack(per), partDown(s.rule.Amount, u.part), s.grain())
		}
	}
	switch o.made, o.shape = true, s.rule.Shape; o.shape {
	case limit.Rolling:
		o.widen(s)
	case limit.Calendar:
		p.turnQuota(now, s)
	}
}

// A window is how long spent units and granted units count.
type window struct{ per, ring, least, most time.Duration }

// widen adapts the times to a window that has become longer or shorter. Units that the store may no longer
// count are dropped, since it is unknown when they left its window.
func (o *own) widen(s *spec) {
	w, old := window{per: s.counts(), ring: time.Duration(s.rule.Ring.Window()) * time.Microsecond}, o.window
	w.least, w.most = s.stay()
	if o.window = w; old == w || old.per == 0 {
		return
	}
	o.spent.shift(w.per-old.per, max(w.per-old.per, w.per+slack(w.per)-old.per-slack(old.per)))
	for i := range o.reserve.blocks {
		o.reserve.blocks[i].low += min(0, w.least-old.least)
	}
	o.had.forget(s.since)
	o.had.shift(w.least-old.least, max(w.ring-old.ring, w.most-old.most)) // their slots keep their length
}

// grain returns how finely a process counts in a window, so that one window needs fewer than mostCounted
// spells.
func (s *spec) grain() time.Duration {
	_, most := s.stay()
	return most / (mostCounted - 8)
}

// hasHad records a grant of a rolling limit. The request was sent at one instant and the response arrived at
// the other.
func (p *lease) hasHad(sent, now time.Duration, s *spec, n int64) {
	u := p.group.standing.use(now)
	p.turnOwn(now, s, u)
	if u.key == 0 {
		p.own.had.drop(now - time.Second)
	}
	least, most := s.stay()
	p.own.had.add(sent+least, now+most, n, s.grain())
}

// gaveBack records the return of granted units: they will not leave the store's window later.
func (p *lease) gaveBack(now time.Duration, m Mark, n int64) {
	s := p.spec()
	if s.rule.Shape != limit.Rolling || m.Level <= 0 {
		return
	}
	least, most := s.stay()
	begin := time.Duration(m.At*m.Level*1000 - p.group.fleet.offset.Load())
	p.group.own.Lock()
	defer p.group.own.Unlock()
	p.turnOwn(now, s, p.group.standing.use(now))
	// The time of the grant is known to within an exchange and the hold.
	slop := p.group.standing.rtt + s.hold
	p.own.had.removeAround(begin+least-slop, begin+most+slop, n)
}

// roomRolling returns how many units may be spent now. It is negative if more were spent. In the first window
// of a use, it is at most the granted units that no longer count, since the store gave the rest to other
// processes.
func (p *lease) roomRolling(now time.Duration, s *spec, u ownUse) int64 {
	o := &p.own
	if o.key != u.key {
		o.key, o.since = u.key, 0
	}
	o.spent.drop(now)
	if u.mode == sharing {
		return partDown(s.rule.Amount, u.part) - o.spent.sum
	}
	_, stay := s.stay()
	kept := &p.group.standing.kept
	room := partDown(s.rule.Amount, min(u.part, kept.least(now-stay))) - o.spent.sum
	if now >= p.firstWindow(u, stay) {
		return room
	}
	// Units spent from the reserve do not reduce the units that left the window.
	reserved := p.roomReserved(now, u)
	room = min(room, o.had.left(u.began, now)-(o.since-o.reserve.spent))
	if reserved == 0 {
		return room
	}
	return min(max(0, room)+reserved, partDown(s.rule.Amount, min(u.part, kept.least(u.began)))-o.spent.sum)
}

// firstWindow returns when the first window of a use ends. Until then, granted units may still count at the
// store.
func (p *lease) firstWindow(u ownUse, stay time.Duration) time.Duration {
	return u.began + stay + p.group.standing.rules.overlap
}

// allowsRolling is allows for a rolling limit. Spent units count for a window, and a part that has grown counts
// as the smaller one for a window.
func (p *lease) allowsRolling(now time.Duration, s *spec, u ownUse, ahead, n int64) allowance {
	o := &p.own
	room := p.roomRolling(now, s, u)
	if n > partDown(s.rule.Amount, u.part) {
		return allowance{bucket.Never, limit.LacksPart}
	}
	if addMost(ahead, n) <= room {
		return allowance{}
	}
	_, stay := s.stay()
	at := min(o.spent.next(now), later(p.group.standing.kept.next(now-stay), stay))
	if first := p.firstWindow(u, stay); u.mode != sharing && now < first {
		at = min(at, o.had.next(now), first)
	}
	return allowance{wait: max(time.Millisecond, at-now)}
}

// spend records units spent from the part: they count in the window and are debts.
func (p *lease) spend(now time.Duration, s *spec, n int64) {
	if u := p.group.standing.use(now); u.mode != sharing {
		r := &p.own.reserve
		r.spent += min(n, p.roomReserved(now, u))
	}
	per := s.counts()
	p.own.spent.add(now+per, now+per+slack(per), n, s.grain())
	p.own.since += n
	p.own.debt += n
	p.group.spenders[p] = struct{}{}
}

// unspend returns units that were not used.
func (p *lease) unspend(leaves time.Duration, n int64) {
	p.own.spent.removeAt(leaves, n)
	p.own.since = max(0, p.own.since-n)
	p.own.debt = max(0, p.own.debt-n)
}
