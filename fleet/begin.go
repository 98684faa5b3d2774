package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A beginning is the start of a lease whose limit replaces another one, so that the previous usage is unknown.
// Such a lease starts empty and has only the units that have accrued since.
//
// The store's cell may be full. Of a bucket, the process takes all units and returns the number that has
// accrued since the start. This happens once, however many processes start. Of a rolling limit, each process
// charges all units, which count for one window. Units of parts that return later then have no effect. Of a
// calendar window, all units count as seen.
type beginning struct {
	empty bool          // the lease starts empty; never changes
	from  time.Duration // units accrue from this instant
	over  bool          // the store knows; guarded by lease.mu
}

// A beginStep is the action of a request for a lease that begins.
type beginStep uint8

const (
	beginDone  beginStep = iota // none
	beginTakes                  // take all units and grant none to calls
	beginTells                  // charge all units first
)

// begins sets the actions of the next request for leases that begin. Only one bucket at a time is emptied.
func (q *queue) begins(now time.Duration) {
	q.takes = false
	for i, p := range q.leases {
		q.steps[i] = beginDone
		if !p.begin.empty {
			continue
		}
		s := p.spec()
		switch step := p.begins(now, s); {
		case step == beginTells:
			q.ask.Settle = append(q.ask.Settle, Settlement{Rule: &s.rule, Key: p.key, Owe: s.rule.Amount})
			q.steps[i] = step
		case step == beginTakes && !q.takes:
			q.takes, q.steps[i] = true, step
		}
	}
}

// begins returns the action of the next request for this lease. The beginning is over when as many units have
// accrued as the store can hold.
func (p *lease) begins(now time.Duration, s *spec) beginStep {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch b := &p.begin; {
	case b.over:
	case s.rule.Shape == limit.Calendar || p.allHasCome(now, s):
		b.over = true
	case s.rule.Shape == limit.Rolling:
		return beginTells
	default:
		return beginTakes
	}
	return beginDone
}

// takesAll changes a claim so that the request takes all units of one bucket.
func (q *queue) takesAll(i int, s *spec, c *Claim) {
	c.Cost, c.Extra = 0, 0
	if q.steps[i] == beginTakes {
		q.ask.Copies, c.Cost = s.burst(), 1
	}
}

// began handles the result of the request of a lease that begins. g is nil if the result is unknown.
func (p *lease) began(sent, now time.Duration, step beginStep, granted int64, g *Grant) {
	if step == beginDone || g == nil || step == beginTakes && g.Left > 0 { // the limit is paused
		return
	}
	p.mu.Lock()
	p.begin.over = true
	p.mu.Unlock()
	if step == beginTakes {
		p.givesBack(sent, now, granted, g)
	}
}

// givesBack returns the units of a bucket that have accrued since the lease began. The bucket may still contain
// part of a unit, which may be more than that.
func (p *lease) givesBack(sent, now time.Duration, granted int64, g *Grant) {
	m := &p.spec().rule.Meter
	us := max(0, p.comes(sent)+min(g.Drain, bucket.Never/2)-time.Microsecond).Microseconds()
	switch weight := m.Drains(us) - m.Cap; {
	case weight < 0:
		p.settle(now, Settlement{Owe: 1})
	case min(granted, weight/m.Unit) > 0:
		p.settle(now, Settlement{Back: min(granted, weight/m.Unit), Mark: g.Mark})
	}
}

// tookAll follows a request that took all units of a bucket. The next request is for the waiting calls.
func (q *queue) tookAll(now time.Duration) {
	for i, p := range q.leases {
		p.hears(now, &q.ask.Claims[i], q.ask.Grants[i], q.ask.Now, q.ask.Again)
		if q.ask.Grants[i].Paused > 0 {
			q.short(now)
			return
		}
	}
	q.mu.Lock()
	q.next = 0
	q.mu.Unlock()
}

// beginning reports whether the store does not know yet how the lease begins.
func (p *lease) beginning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begin.empty && !p.begin.over
}

// ownEmpty makes the lease begin empty for use without the store.
func (p *lease) ownEmpty() {
	if s := p.spec(); s.rule.Shape == limit.Rolling {
		per := windowOf(&s.limit).Per
		at := p.begin.from + per
		p.own.spent.add(at, at+slack(per), s.rule.Amount, s.grain())
	}
}

// comes returns how long units have accrued since the lease began, by a clock that may drift.
func (p *lease) comes(now time.Duration) time.Duration {
	d := now - p.begin.from
	return max(0, d-slack(d))
}

// allHasCome reports whether as many units have accrued since the lease began as the store can hold. For a
// bucket, it counts fractions of units.
func (p *lease) allHasCome(now time.Duration, s *spec) bool {
	if s.rule.Shape == limit.Bucket {
		return s.rule.Meter.Drains(p.comes(now).Microseconds()) >= s.rule.Meter.Cap
	}
	return p.comeSince(now, s) >= s.burst()
}

// comeSince returns how many units may have accrued since the lease began.
func (p *lease) comeSince(now time.Duration, s *spec) int64 {
	if !p.begin.empty {
		return s.burst()
	}
	d := p.comes(now)
	switch s.rule.Shape {
	case limit.Bucket:
		return min(s.burst(), s.rule.Meter.Drains(d.Microseconds())/s.rule.Meter.Unit)
	case limit.Rolling:
		if _, stay := s.stay(); d < stay {
			return 0
		}
	default:
		if p.blank(s.limit.Windows(p.group.fleet.storeTime(now)).Start) {
			return 0
		}
	}
	return s.burst()
}

// blank reports whether all units of a calendar window count as used, because the limit replaced another one in
// it.
func (p *lease) blank(start time.Time) bool {
	return p.begin.empty && !start.After(p.group.fleet.storeTime(p.begin.from))
}

// seenBack is more units than a window can get back, so that Claim.Seen counts in full.
const seenBack = 1 << 50
