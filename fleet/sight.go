package fleet

import (
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// sight is what the store said of a limit. The zero sight is that it has said nothing; what it says ages, and waits in it
// are told less its age.
type sight struct {
	known bool // it has said something
	at    time.Duration
	grant Grant
	start time.Time // of the calendar window
	end   time.Time
	count int64 // units gone in the window; Grant.Back of them have come back
}

// hears notes what the store said. The answer to a repeat may be as old as what it repeats: of which
// calendar window it tells is not known.
func (p *lease) hears(now time.Duration, c *Claim, g Grant, at time.Time, again bool) {
	next := sight{known: true, at: now, grant: g}
	if c.Rule.Shape == limit.Calendar { // the limit may have been changed since it was asked for
		next.start, next.end = c.Start, c.End
		// The store's clock is in the second window that the claim names.
		if !at.Before(c.End) {
			next.start, next.end = c.End, c.Next
		}
		next.count = max(0, c.Rule.Amount-g.Left)
	}
	if g.Mark.Step != 0 { // else it is no mark; those given before keep their step
		p.step.Store(g.Mark.Step)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if again && c.Rule.Shape == limit.Calendar && p.seen.known {
		return
	}
	if g.Cold || again { // that tells nothing of what has gone
		next.count, next.grant.Back = 0, 0
		if p.seen.start.Equal(next.start) {
			next.count, next.grant.Back = p.seen.count, p.seen.grant.Back
		}
	}
	p.seen = next
}

// Look is what the store said last, or what there is while it is away.
func (p *lease) Look(now time.Duration) limit.Level {
	s := p.spec()
	v := limit.Level{Left: p.comeSince(now, s), Full: s.most(), HeldBack: s.heldBack(), PerSecond: s.perSecond(p.group.fleet.storeTime(now)), Age: bucket.Never}
	if at := p.sight(); at.known && !(at.grant.Cold && p.group.warm.Load()) {
		v.Left = min(v.Full, at.grant.Left+p.held(now))
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

// lookOwn is what there is, and when all that can be is, while the store is away or was never there.
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
	case u.mode != asking && (!p.sight().known || g.failing.Load()): // else it answers asks, and beats in a moment
		if s.rule.Shape == limit.Calendar {
			held += p.stands(now, s, u)
		}
		v.Left, v.Reset = min(v.Full, held), max(v.Reset, g.again(now))
	}
}

// sight is what the store said last.
func (p *lease) sight() sight {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}
