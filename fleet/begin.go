package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A beginning is how a lease begins whose limit takes the place of another, under which nobody knows
// how much has gone: with what has come since, and nothing else.
//
// The store may hold its cell as full. Of a bucket the process takes all that is there, and gives back what
// has come since: so it goes once, however many processes begin. Of a rolling limit each charges all, which
// counts for one window: parts that come back then bring nothing. Of a calendar window all counts as seen.
type beginning struct {
	empty bool          // there is one; it does not change
	from  time.Duration // since when units count that came
	over  bool          // the store knows; guarded by lease.mu
}

// A beginStep is what an ask has to do for a lease that begins.
type beginStep uint8

const (
	beginDone  beginStep = iota // nothing
	beginTakes                  // it takes all that is there, and nothing else
	beginTells                  // it charges all first
)

// begins notes what the next ask has to do for leases that begin: of buckets for one at a time.
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

// begins is what the next ask has to do for this lease. A beginning that is over, as all has come that the
// store can hold, asks for nothing.
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

// takesAll makes a claim of an ask that takes all that is there of one bucket.
func (q *queue) takesAll(i int, s *spec, c *Claim) {
	c.Cost, c.Extra = 0, 0
	if q.steps[i] == beginTakes {
		q.ask.Copies, c.Cost = s.most(), 1
	}
}

// began notes what became of the ask of a lease that begins: g is nil if that is not known.
func (p *lease) began(sent, now time.Duration, step beginStep, granted int64, g *Grant) {
	if step == beginDone || g == nil || step == beginTakes && g.Left > 0 { // it is paused
		return
	}
	p.mu.Lock()
	p.begin.over = true
	p.mu.Unlock()
	if step == beginTakes {
		p.givesBack(sent, now, granted, g)
	}
}

// givesBack gives back what has come of a bucket since the lease began. What is there still, less than
// a unit, may be more than that.
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

// tookAll is after an ask that took all that was there of a bucket: what those who wait want is asked for next.
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

// beginning reports whether the store has still to be told how the lease begins.
func (p *lease) beginning() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begin.empty && !p.begin.over
}

// ownEmpty lets nothing have come of what the process uses without the store.
func (p *lease) ownEmpty() {
	if s := p.spec(); s.rule.Shape == limit.Rolling {
		per := windowOf(&s.limit).Per
		at := p.begin.from + per
		p.own.spent.add(at, at+slack(per), s.rule.Amount, s.grain())
	}
}

// comes is for how long units have come since the lease began, by a clock that may drift.
func (p *lease) comes(now time.Duration) time.Duration {
	d := now - p.begin.from
	return max(0, d-slack(d))
}

// allHasCome reports whether as much has come since the lease began as the store can hold: of a bucket
// parts of units, too.
func (p *lease) allHasCome(now time.Duration, s *spec) bool {
	if s.rule.Shape == limit.Bucket {
		return s.rule.Meter.Drains(p.comes(now).Microseconds()) >= s.rule.Meter.Cap
	}
	return p.comeSince(now, s) >= s.most()
}

// comeSince is how many units may have come since the lease began.
func (p *lease) comeSince(now time.Duration, s *spec) int64 {
	if !p.begin.empty {
		return s.most()
	}
	d := p.comes(now)
	switch s.rule.Shape {
	case limit.Bucket:
		return min(s.most(), s.rule.Meter.Drains(d.Microseconds())/s.rule.Meter.Unit)
	case limit.Rolling:
		if _, stay := s.stay(); d < stay {
			return 0
		}
	default:
		if p.blank(s.limit.Windows(p.group.fleet.storeTime(now)).Start) {
			return 0
		}
	}
	return s.most()
}

// blank reports whether all of a calendar window counts as gone: in it the limit took another's place.
func (p *lease) blank(start time.Time) bool {
	return p.begin.empty && !start.After(p.group.fleet.storeTime(p.begin.from))
}

// seenBack is more than ever comes back of a window: then Claim.Seen counts whole.
const seenBack = 1 << 50
