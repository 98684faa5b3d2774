package cascade

import (
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A View is a snapshot of a tier for operators and metrics.
type View struct {
	Tier       string
	Confidence float64
	Instant    bool
	Phase      breaker.Phase // closed: every call may ask it
	Why        breaker.Cause // cause of the phase
	For        time.Duration // how long it stays open; 0 if it is not open
	InARow     int           // consecutive failures
	Takes      time.Duration // median of its recent answer times; 0 if there are none

	// Numbers of calls: answered, failed, without an answer, and skipped. Empty includes calls to which the tier did not
	// apply, and calls that weir refused. Skipped counts calls that did not ask the tier because its breaker was open or
	// no time was left.
	Answered, Failed, Empty, Skipped int64
}

// View returns all tiers, best first. It has no effect on them: a breaker whose open time is over is shown as open with
// For 0 until a call probes.
func (c *Cascade) View() []View {
	p, now := c.plan.Load(), c.clock.Now()
	views := make([]View, len(p.tiers))
	for i, t := range p.tiers {
		views[i] = t.view(&p.cfg.Tiers[i], now)
	}
	return views
}

// view returns a snapshot. An instant tier has no breaker.
func (t *tier) view(cfg *TierConfig, now time.Duration) View {
	v := View{
		Tier: t.name, Confidence: cfg.Confidence, Instant: cfg.Instant, Takes: t.took.Median(),
		Answered: t.answered.Load(), Failed: t.failures.Load(), Empty: t.empty.Load(), Skipped: t.skipped.Load(),
	}
	if cfg.Instant { // its breaker may be from an earlier configuration
		return v
	}
	b := t.breaker.Look(now)
	v.Phase, v.Why, v.InARow = b.Phase, b.Why, b.InARow
	if b.Phase == breaker.Open {
		v.For = max(0, b.Until-now)
	}
	return v
}
