package cascade

import "time"

// A View is what there is to see of a tier, for people and metrics.
type View struct {
	Tier       string
	Confidence float64
	Instant    bool
	Phase      Phase
	Why        Cause         // why it is in this phase; "" if it was never in another
	For        time.Duration // how long it still cools; 0 if it does not
	Share      int           // percentage of the calls that may ask it
	InARow     int           // failures since the last success; while up

	// How often it was asked and answered, failed, or had no answer: was not
	// meant for the call, or held back by a gate of weir's own. And how often it
	// was not asked at all, while cooling or for want of time.
	Answered, Failed, Empty, Skipped int64
}

// View shows every tier, the best one first. It changes nothing: a tier whose
// time is over is shown cooling, with For 0, until a call comes to probe.
func (c *Cascade) View() []View {
	p, now := c.plan.Load(), c.clock.Now()
	views := make([]View, len(p.tiers))
	for i, t := range p.tiers {
		views[i] = t.view(p, &p.cfg.Tiers[i], now)
	}
	return views
}

func (t *tier) view(p *plan, cfg *TierConfig, now time.Duration) View {
	t.mu.Lock()
	s := t.state
	t.mu.Unlock()
	s.advance(now, &p.cfg)
	v := View{
		Tier: t.name, Confidence: cfg.Confidence, Instant: cfg.Instant,
		Phase: s.phase, Why: s.cause, Share: s.share(&p.cfg), InARow: s.inARow,
		Answered: t.answered.Load(), Failed: t.failures.Load(), Empty: t.empty.Load(), Skipped: t.skipped.Load(),
	}
	if s.phase == Cooling {
		v.For = max(0, s.until-now)
	}
	if cfg.Instant { // whatever it was before a reload
		v.Phase, v.Why, v.For, v.Share, v.InARow = Up, "", 0, 100, 0
	}
	return v
}
