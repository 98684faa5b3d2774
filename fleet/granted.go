package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"time"
)

// share gives out what the store has granted, to an ask that was sent first at the instant; err is why nobody knows what
// became of it. What came too late to be used goes back. The order matters: who waits is served before blocks are kept, and
// those who lack something still are told how long that may last.
func (q *queue) share(sent sending, now time.Duration, err error) {
	for i, p := range q.leases {
		var g *Grant
		if err == nil {
			g = &q.ask.Grants[i]
		}
		p.began(sent.at, now, q.steps[i], q.ask.Granted, g)
	}
	if err == nil {
		q.mu.Lock()
		q.fails = 0
		q.mu.Unlock()
		if q.takes {
			q.tookAll(now)
			return
		}
		// The window ended while the answer came: nothing of it may be used, and the next one is asked for when it has begun.
		if end, why, ok := q.turning(sent, now); ok {
			q.giveUp(now)
			q.postpone(now, max(0, end-now), 0, why, 0)
			return
		}
		// The answer took longer than what it grants may be held.
		if q.isLate(sent, now) {
			q.noteLate(sent.at, now, true)
			q.giveUp(now)
			q.mu.Lock()
			q.next, q.dear = now+askAgain, 0
			q.mu.Unlock()
			return
		}
	}
	if err != nil {
		q.failed(now)
		return
	}
	// From here on the answer counts: first what it says of the limits, then those who wait.
	q.quick.note(now, now-sent.at)
	q.inTime()
	for i, p := range q.leases {
		q.group.warms(now, p.spec(), q.ask.Claims[i].Cost, &q.ask.Grants[i])
		p.hears(now, &q.ask.Claims[i], q.ask.Grants[i], q.ask.Now, q.ask.Again)
	}
	q.by = q.lasts(sent)
	spare := q.grants(now, q.ask.Granted)
	for i, p := range q.leases {
		q.keep(i, p, spare, sent, now)
	}
	if q.lacks = q.ask.Granted < q.ask.Copies; q.ask.Granted > 0 {
		q.askIn = 0
	}
	if q.lacks && !q.sparesAll(now) {
		q.short(now)
	}
}

// sparesAll returns units that are reserved for an outage, of each limit that has too few left for a call, and lets the queue
// ask again at once. It reports false if the reserve is not enough for a call, or nothing was returned: the call is then refused
// or waits. Each repeat returns a unit at least, so there are at most as many as the reserve has units.
func (q *queue) sparesAll(now time.Duration) bool {
	lacks, returned := false, false
	for i, p := range q.leases {
		switch left, cost := q.ask.Grants[i].Left, q.ask.Claims[i].Cost; {
		case left >= cost:
		case left+p.spareable(now) >= cost:
			lacks = true
		default:
			return false
		}
	}
	if !lacks || q.solo || q.group.failing.Load() {
		return false
	}
	for i, p := range q.leases {
		returned = p.spares(now, p.spec(), q.ask.Claims[i].Cost) || returned
	}
	if !returned {
		return false
	}
	q.mu.Lock()
	q.next = now
	q.mu.Unlock()
	return true
}

// Between asks that fail lies firstRetry, then twice as long each time, up to lastRetry; half to one and a half of it, at
// random, so that a store that comes back is not asked by all of a fleet at once.
const (
	firstRetry = 40 * time.Millisecond
	lastRetry  = time.Second
)

// failed is what becomes of an ask that has failed: it may be made again.
func (q *queue) failed(now time.Duration) {
	keepDebts(now, q.ask.Settle, q.leases)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsure = true
	// What became of the ask is not known: the next one is a repeat, if what the first may have granted can be used then.
	d := min(lastRetry, firstRetry<<min(q.fails, 10))
	q.fails++
	q.dear = 0 // cheaper calls wait, too
	q.next = now + d/2 + q.group.fleet.within(d)
}

// isLate reports whether the answer came too late for one of the limits of which something
// was granted. Of a calendar limit it never does.
func (q *queue) isLate(sent sending, now time.Duration) bool {
	for i, p := range q.leases {
		if d, late := q.holds(i, p.spec()); late && q.granted(i) > 0 && q.passed(sent, now, d) {
			return true
		}
	}
	return false
}

// granted is how many units of a limit the store has granted.
func (q *queue) granted(i int) int64 {
	return q.ask.Granted*q.ask.Claims[i].Cost + q.ask.Grants[i].Extra
}

// turning reports whether a calendar window ends too soon for what was granted of it to
// be used, and when that is.
func (q *queue) turning(sent sending, now time.Duration) (end time.Duration, why int, ok bool) {
	for i, p := range q.leases {
		g := &q.ask.Grants[i]
		s := p.spec()
		if s.rule.Shape == limit.Calendar && q.ask.Granted > 0 && g.Paused == 0 && q.passed(sent, now, s.untilReset(g)) {
			end, why, ok = max(end, sent.at+g.Reset), i, true
		}
	}
	return end, why, ok
}

// giveUp gives back everything that was granted: with the next ask, or by Run.
func (q *queue) giveUp(now time.Duration) {
	for i, p := range q.leases {
		if n := q.granted(i); n > 0 {
			p.settle(now, Settlement{Back: n, Mark: q.ask.Grants[i].Mark})
		}
	}
}

// keepDebts keeps what must not be lost when a call failed at the instant. What came
// back is lost: given back twice it would be granted twice.
func keepDebts(now time.Duration, settle []Settlement, leases []*lease) {
	for i := range settle {
		s := &settle[i]
		for _, p := range leases {
			if p.key != s.Key || p.spec().rule.Name != s.Rule.Name || p.beginning() {
				continue
			}
			p.Owe(now, s.Owe)
		}
	}
}

// grants ends the wait of as many as have been granted, in order, and returns for how many copies
// nobody waits any more.
func (q *queue) grants(now time.Duration, n int64) (spare int64) {
	q.line.Each(func(a line.Asker) line.Kind {
		w := a.(*waiter)
		if n == 0 || !q.isFor(w) {
			return line.Wait
		}
		n--
		for i := range q.leases {
			w.turns[i] = q.turn(i, n)
		}
		w.by, w.given, w.asked = q.by, now, q.first.at
		return line.Go
	})
	return n
}

// lasts is until when what was granted may be used: what the first of the limits allows, counted from when the store was
// asked.
func (q *queue) lasts(sent sending) expiry {
	by := noExpiry
	for i, p := range q.leases {
		s := p.spec()
		if s.rule.Shape == limit.Calendar {
			by = by.first(sent.expiry(s.untilReset(&q.ask.Grants[i])))
		} else if d, late := q.holds(i, s); late {
			by = by.first(sent.expiry(d))
		}
	}
	return by
}

// holds is for how long what was granted may be used, and whether it must not be used later: no
// longer than the store was told when it was asked, if the limit was changed since.
func (q *queue) holds(i int, s *spec) (d time.Duration, late bool) {
	r := q.ask.Claims[i].Rule
	if r == &s.rule || r.Shape == limit.Calendar {
		return s.hold, s.late
	}
	return min(s.hold, micros(r.Hold)), s.late || r.Hold > 0
}

// passed reports whether so long has passed since the store was asked.
func (q *queue) passed(sent sending, now, d time.Duration) bool {
	return sent.expiry(d).passed(now, q.group.fleet.clock)
}

// keep keeps what was granted of one limit besides: copies that nobody waits for any more,
// a block to be spent soon, and what is to stand by. All of it counts as had, and all but what stands by as used: by that the
// size of the next block is reckoned, and how much is wanted.
func (q *queue) keep(i int, p *lease, spare int64, sent sending, now time.Duration) {
	c, g, s := &q.ask.Claims[i], &q.ask.Grants[i], p.spec()
	// Of Extra a block is to be spent soon, and the rest, of a calendar limit, stands by.
	block, stands := min(g.Extra, q.block[i]), g.Extra
	if stands -= block; q.solo && s.rule.Shape == limit.Calendar {
		block, spare, stands = 0, 0, g.Extra+spare*c.Cost
	}
	all := q.ask.Granted*c.Cost + g.Extra
	p.mu.Lock()
	p.demand.used(now, all-stands)
	p.mu.Unlock()
	p.took(sent.at, now, s, all, all-stands)
	mark := g.Mark
	if n := stands; n > 0 && c.Rule != &s.rule { // the limit was changed meanwhile
		p.settle(now, Settlement{Back: n, Mark: mark})
		mark.Level -= n * mark.Step
	} else if n > 0 && s.rule.Shape == limit.Rolling {
		p.keepReserve(sent.at, now, s, n, mark)
	} else if n > 0 { // the last
		p.keepBy(now, n, sent.expiry(s.untilReset(g)), mark)
		mark.Level -= n * mark.Step
	}
	if n := block + spare*c.Cost; n > 0 {
		d, _ := q.holds(i, s)
		until := sent.expiry(d)
		if s.rule.Shape == limit.Calendar { // what is leased dies at the reset
			until = until.first(sent.expiry(s.untilReset(g)))
		}
		p.put(now, n, until, mark)
	}
}

// turn is what a copy with so many behind it is given of lease i. The units of a grant stand one after the other: the copies
// first, then Extra, and the mark is that of the last.
func (q *queue) turn(i int, behind int64) limit.Turn {
	c, g := &q.ask.Claims[i], &q.ask.Grants[i]
	var t limit.Turn
	t.Place = g.Mark.Level - (g.Extra+behind*c.Cost)*g.Mark.Step
	t.Low, t.Cost = g.Mark.At, c.Cost
	return t
}

// short says when to ask again after less than what was asked for, and refuses
// those who cannot wait so long.
func (q *queue) short(now time.Duration) {
	var wait, space time.Duration
	why := 0
	for i, p := range q.leases {
		if g := &q.ask.Grants[i]; g.Wait > wait {
			wait, why = g.Wait, i
		}
		if s := p.spec(); s.leased {
			space = max(space, q.scarce(i, s))
		}
	}
	if q.missing(now) {
		wait, space = 0, q.spacing()
	}
	q.postpone(now, wait, space, why, q.ask.Claims[why].Cost)
}

// scarce returns the least time between two requests of a process that leases and got less of limit i than it asked for. Fewer
// requests then bring more units each. Where calls return units, a unit that lies in the store is a loss, as a return frees only
// what was used since its grant. So a request that carried returns is followed by one soon.
func (q *queue) scarce(i int, s *spec) time.Duration {
	for j := range q.ask.Settle {
		if b := &q.ask.Settle[j]; b.Back > 0 && b.Key == q.leases[i].key && b.Rule == q.ask.Claims[i].Rule {
			return leasedAgain
		}
	}
	return max(scarceLeast, s.hold/4)
}

// postpone lets those who can wait for a limit wait, and refuses the others, of those who cost
// it so much: of cheaper ones nothing is known.
func (q *queue) postpone(now, wait, space time.Duration, why int, cost int64) {
	wait = max(wait, askAgain)
	cheap := q.refuse(now, wait, why, cost)
	if !cheap {
		q.keeps(now, later(now, wait))
	}
	q.mu.Lock()
	// A little later than told: all of the fleet was told the same. And not much
	// later than now, as others may give something back.
	q.askIn = min(max(askSoon, 2*q.askIn), askAtLeast)
	soon := min(max(1, wait-q.quick.least()), q.askIn)
	if q.line.Waiting() > 0 {
		soon = min(soon, askAtLeast/4)
	}
	if cheap {
		soon, space = 0, q.spacing()
	}
	if now < time.Duration(q.group.crowded.Load()) || now > time.Duration(q.group.lone.Load()) && !q.alone(now) {
		spread := time.Duration(q.group.spread.Load())
		space = max(space, spread/2+q.group.fleet.within(spread+1))
	}
	q.next, q.there, q.why, q.dear = now+max(soon, space)+q.group.fleet.within(soon/64+1), later(now, wait), why, cost
	q.mu.Unlock()
}
