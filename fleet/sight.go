package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sight is the latest response of the store about a limit. The zero sight means that there was none. Its waits
// are reported minus its age.
type sight struct {
	known bool // the store has responded
	at    time.Duration
	grant Grant
	start time.Time // of the calendar window
	end   time.Time
	count int64 // units used in the window; Grant.Back of them have returned
}

// hears records a response. The response to a repeat may be as old as the first request, so its calendar window
// is unknown.
func (p *lease) hears(now time.Duration, c *Claim, g Grant, at time.Time, again bool) {
	next := sight{known: true, at: now, grant: g}
	if c.Rule.Shape == limit.Calendar { // the limit may have changed since the request
		next.start, next.end = c.Start, c.End
		// The store's clock is in the claim's second window.
		if !at.Before(c.End) {
			next.start, next.end = c.End, c.Next
		}
		next.count = max(0, c.Rule.Amount-g.Left)
	}
	if g.Mark.Step != 0 { // otherwise there is no mark, and earlier marks keep their step
		p.step.Store(g.Mark.Step)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if again && c.Rule.Shape == limit.Calendar && p.seen.known {
		return
	}
	if g.Cold || again { // then it does not contain the usage
		next.count, next.grant.Back = 0, 0
		if p.seen.start.Equal(next.start) {
			next.count, next.grant.Back = p.seen.count, p.seen.grant.Back
		}
	}
	p.seen = next
}

// Look returns the state in the latest response, or the available units during an outage. Units that this process
// holds and does not use count as left, and units that it has used and not reported do not.
func (p *lease) Look(now time.Duration) limit.Level {
	s := p.spec()
	v := limit.Level{Left: p.comeSince(now, s), Full: s.burst(), HeldBack: s.most() - s.burst(), PerSecond: s.perSecond(p.group.fleet.storeTime(now)), Age: bucket.Never}
	if at := p.sight(); at.known && !(at.grant.Cold && p.group.warm.Load()) {
		v.Left = max(0, min(v.Full, at.grant.Left+p.held(now)+p.spareable(now)+p.unreported(now, s)))
		v.Reset = max(0, at.grant.Reset-(now-at.at))
		v.ResetAt, v.Age = at.end, now-at.at
		if v.Reset == 0 {
			v.Left = v.Full
		}
	}
	p.lookOwn(now, s, &v)
	v.Paused = p.Paused(now)
	return v
}

// unreported returns how many more units will be left once the pending settlements are reported and expired blocks have
// returned. Expired units of a bucket may have drained meanwhile.
func (p *lease) unreported(now time.Duration, s *spec) (n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.blocks {
		if b := p.blocks[i].Load(); b != nil && s.rule.Shape != limit.Bucket && b.until.passed(now, p.group.fleet.clock) {
			n += p.seen.frees(&Settlement{Back: b.left.Load(), Mark: b.mark})
		}
	}
	for i := range p.pending {
		n += p.seen.frees(&p.pending[i])
	}
	return n
}

// frees returns how many more units will be left after a settlement: it returns units or reports a debt. Returned units of
// an earlier calendar window do not count.
func (in *sight) frees(s *Settlement) int64 {
	if s.Back > 0 && !in.start.IsZero() && s.Mark.At != in.start.UnixMicro() {
		return -s.Owe
	}
	return s.Back - s.Owe
}

// lookOwn sets the available units, and when all possible ones are available, while the store is unavailable or
// was never reached.
func (p *lease) lookOwn(now time.Duration, s *spec, v *limit.Level) {
	g := p.group
	g.own.Lock()
	defer g.own.Unlock()
	u := g.standing.use(now)
	p.turnOwn(now, s, u)
	switch held := p.held(now); {
	case u.mode.uses() && !p.passing:
		left, reset := p.ownLeft(now, s, u)
		v.Left, v.Age = min(v.Full, left+held), 0
		if s.rule.Shape != limit.Calendar {
			v.Reset = reset
		}
	case u.mode != asking && (!p.sight().known || g.failing.Load()): // otherwise the store responds to requests, and soon to a heartbeat
		if s.rule.Shape == limit.Calendar {
			held += p.stands(now, s, u)
		}
		v.Left, v.Reset = min(v.Full, held), max(v.Reset, g.again(now))
	}
}

// sight returns the latest response.
func (p *lease) sight() sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}
