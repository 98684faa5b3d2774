package cascade

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A View is what there is to see of a tier, for people and metrics.
type View struct {
	Tier       string
	Confidence float64
	Instant    bool
	Phase      breaker.Phase // closed: every call may ask it
	Why        breaker.Cause // why it is in this phase
	For        time.Duration // how long it stays open; 0 if it does not
	InARow     int           // failures since the last success
	Takes      time.Duration // the median of what its answers took lately; 0 if there were none

	// How often it was asked and answered, failed, or had no answer: was not
	// meant for the call, or held back by a gate of weir's own. And how often it
	// was not asked at all, for an open breaker or for want of time.
	Answered, Failed, Empty, Skipped int64
}

// View shows every tier, the best one first. It changes nothing: a tier whose
// time is over is shown open, with For 0, until a call comes to probe.
func (c *Cascade) View() []View {
	p, now := c.plan.Load(), c.clock.Now()
	views := make([]View, len(p.tiers))
	for i, t := range p.tiers {
		views[i] = t.view(&p.cfg.Tiers[i], now)
	}
	return views
}

// view is a copy, for people and metrics. An instant tier has no breaker.
func (t *tier) view(cfg *TierConfig, now time.Duration) View {
	v := View{
		Tier: t.name, Confidence: cfg.Confidence, Instant: cfg.Instant, Takes: t.took.Median(),
		Answered: t.answered.Load(), Failed: t.failures.Load(), Empty: t.empty.Load(), Skipped: t.skipped.Load(),
	}
	if cfg.Instant { // whatever it was before a reload
		return v
	}
	b := t.breaker.Look(now)
	v.Phase, v.Why, v.InARow = b.Phase, b.Why, b.InARow
	if b.Phase == breaker.Open {
		v.For = max(0, b.Until-now)
	}
	return v
}
