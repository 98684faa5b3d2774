package fleet

import (
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/line"
	"time"
)

// share distributes a grant. sent is when the request was first sent. If err is not nil, the effect of the
// request is unknown. Units that arrived too late are returned. The order matters: waiting calls are served
// before blocks are kept, and calls that still lack units learn their wait last.
func (q *queue) share(sent sending, now time.Duration, err error) {
	for i, p := range q.leases {
		var g *Grant
		if err == nil {
			g = &q.ask.Grants[i]
		}
		p.began(sent.at, now, q.steps[i], q.ask.Granted, g)
	}
	if err == nil {
		q.noteHolds(now)
		q.mu.Lock()
		q.fails = 0
		q.mu.Unlock()
		if q.takes {
			q.tookAll(now)
			return
		}
		// The window ended before the response arrived. None of its units may be used. The next request follows
		// when the next window has begun.
		if end, why, ok := q.turning(sent, now); ok {
			q.giveUp(now)
			q.postpone(now, max(0, end-now), 0, why, 0)
			return
		}
		// The response took longer than its grant is valid.
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
	// The response counts from here on: first its information about the limits, then the waiting calls.
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
	if q.lacks && !q.sparesAll(now) && !q.returning(now) {
		q.short(now)
	}
}

// sparesAll returns units that are reserved for an outage, of each limit with too few units left for a call,
// and makes the queue ask again immediately. It reports false if the reserve is not enough for a call or no
// unit was returned. The call is then refused or waits. Each repeat returns at least one unit, so the repeats
// end.
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

// The delay after a failed request is firstRetry, then doubles up to lastRetry. It is multiplied by a random
// factor from 0.5 to 1.5, so that the processes of a fleet do not all ask a recovered store at once.
const (
	firstRetry = 40 * time.Millisecond
	lastRetry  = time.Second
)

// failed handles a failed request. It may be repeated.
func (q *queue) failed(now time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.unsure = true
	// The effect of the request is unknown. The next request repeats it if its grant would still be usable.
	d := min(lastRetry, firstRetry<<min(q.fails, 10))
	q.fails++
	q.dear = 0 // cheaper calls wait as well
	q.next = now + d/2 + q.group.fleet.within(d)
}

// isLate reports whether the response was too late for one of the limits with a grant. For a calendar limit it
// never is.
func (q *queue) isLate(sent sending, now time.Duration) bool {
	for i, p := range q.leases {
		if d, late := q.holds(i, p.spec()); late && q.granted(i) > 0 && q.passed(sent, now, d) {
			return true
		}
	}
	return false
}

// granted returns how many units of limit i the store has granted.
func (q *queue) granted(i int) int64 {
	return q.ask.Granted*q.ask.Claims[i].Cost + q.ask.Grants[i].Extra
}

// turning reports whether a calendar window ends too soon to use its grant, and when it ends.
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

// giveUp returns the complete grant, with the next request or through Run.
func (q *queue) giveUp(now time.Duration) {
	for i, p := range q.leases {
		if n := q.granted(i); n > 0 {
			p.settle(now, Settlement{Back: n, Mark: q.ask.Grants[i].Mark})
		}
	}
}

// keepDebts keeps the debts of a request that is not repeated any more. Its returned units are lost, because
// returning them twice could grant them twice.
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

// grants ends the wait of the first n calls in order. It returns how many copies no call waits for any more.
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

// lasts returns the expiry of the grant: the earliest expiry of the limits, counted from when the request was
// sent.
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

// holds returns how long the grant is valid, and whether it must not be used later. If the limit has changed
// since the request, it is no longer than the request stated.
func (q *queue) holds(i int, s *spec) (d time.Duration, late bool) {
	r := q.ask.Claims[i].Rule
	if r == &s.rule || r.Shape == limit.Calendar {
		return s.hold, s.late
	}
	return min(s.hold, micros(r.Hold)), s.late || r.Hold > 0
}

// passed reports whether d has passed since the request was sent.
func (q *queue) passed(sent sending, now, d time.Duration) bool {
	return sent.expiry(d).passed(now, q.group.fleet.clock)
}

// keep keeps the grant of limit i that no call used: spare copies, a block to spend soon, and standby units.
// The whole grant counts as granted, and all except standby units count as used. That determines the size of
// the next block and the reported demand.
func (q *queue) keep(i int, p *lease, spare int64, sent sending, now time.Duration) {
	c, g, s := &q.ask.Claims[i], &q.ask.Grants[i], p.spec()
	// Part of Extra is a block to spend soon. The rest goes to the standby or reserve.
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
	if n := stands; n > 0 && c.Rule != &s.rule { // the limit has changed since the request
		p.settle(now, Settlement{Back: n, Mark: mark})
		mark.Level -= n * mark.Step
	} else if n > 0 && s.rule.Shape == limit.Rolling {
		p.keepReserve(sent.at, now, s, n, mark)
	} else if n > 0 { // the last units of the grant go to the standby
		p.keepBy(now, n, sent.expiry(s.untilReset(g)), mark)
		mark.Level -= n * mark.Step
	}
	if n := block + spare*c.Cost; n > 0 {
		d, _ := q.holds(i, s)
		until := sent.expiry(d)
		if s.rule.Shape == limit.Calendar { // leased units expire at the reset
			until = until.first(sent.expiry(s.untilReset(g)))
		}
		p.put(now, n, until, mark)
	}
}

// turn returns the units of lease i for a copy that is followed by behind other copies. The units of a grant
// are adjacent: copies first, then Extra. The mark is that of the last unit.
func (q *queue) turn(i int, behind int64) limit.Turn {
	c, g := &q.ask.Claims[i], &q.ask.Grants[i]
	var t limit.Turn
	t.Place = g.Mark.Level - (g.Extra+behind*c.Cost)*g.Mark.Step
	t.Low, t.Cost = g.Mark.At, c.Cost
	return t
}

// short schedules the next request after an incomplete grant, and refuses calls whose deadlines are too early.
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

// scarce returns the least time between two requests of a process that leases and got less of limit i than it
// requested. Fewer requests then grant more units each. But if calls return units, units should not stay in the
// store, because a return frees only the usage since the grant. Therefore a request that carried returns is
// soon followed by another one.
func (q *queue) scarce(i int, s *spec) time.Duration {
	for j := range q.ask.Settle {
		if b := &q.ask.Settle[j]; b.Back > 0 && b.Key == q.leases[i].key && b.Rule == q.ask.Claims[i].Rule {
			return leasedAgain
		}
	}
	return max(scarceLeast, s.hold/4)
}

// postpone keeps calls waiting that can wait for a limit, and refuses the other calls that cost at least cost.
// The wait of cheaper calls is unknown.
func (q *queue) postpone(now, wait, space time.Duration, why int, cost int64) {
	wait = max(wait, askAgain)
	cheap := q.refuse(now, wait, why, cost)
	if !cheap {
		q.keeps(now, later(now, wait))
	}
	q.mu.Lock()
	// Ask slightly later than the wait, since all processes of the fleet got the same wait. Do not ask much
	// later than now, since other processes may return units.
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
