package serve

import (
	"iter"
	"maps"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/llm/gateway"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// events returns the events of dialects for metrics.
func (m *models) events() gateway.Events {
	return gateway.Events{Answered: m.answered, Used: m.spent}
}

func (m *models) answered(a gateway.Answered) {
	m.metrics.Answered(a.Upstream, a.Tier, a.Degraded, a.Cache, a.Took)
	if m.cloud != nil {
		m.cloud.Answered(weircw.Answer{Upstream: a.Upstream, Tier: a.Tier, Degraded: a.Degraded, Cache: a.Cache})
	}
}

// spent reports an answer's tokens to CloudWatch. Prometheus reads the ledger.
func (m *models) spent(u gateway.Used) {
	if m.cloud != nil {
		m.cloud.Used(u.Upstream, u.Usage.Input, u.Usage.Output, int64(u.Cost))
	}
}

// changed reports that the breaker of a tier has changed its state.
func (m *models) changed(upstream string, c cascade.Change) {
	m.metrics.TierChanged(upstream, c.Tier, c.To.String())
	m.log.Info("tier changed", "upstream", upstream, "tier", c.Tier, "from", c.From.String(), "to", c.To.String(), "why", c.Why.String(), "code", c.Code, "for", c.For.String())
}

// used yields the usage of models.
func (m *models) used() iter.Seq[weirprom.ModelUse] {
	return func(yield func(weirprom.ModelUse) bool) {
		for who, t := range m.ledger.All() {
			u := weirprom.ModelUse{
				Tenant: who.Tenant, User: who.User, Model: who.Model, Calls: t.Calls, Cost: t.Cost.Dollars(),
				Input: t.Input, Output: t.Output, CacheRead: t.CacheRead, CacheWrite: t.CacheWrite,
			}
			if !yield(u) {
				return
			}
		}
	}
}

// tiers yields the models of cascades, with the state of their breakers.
func (m *models) tiers() iter.Seq[weirprom.TierState] {
	m.mu.Lock()
	cascades := maps.Clone(m.cascades)
	m.mu.Unlock()
	return func(yield func(weirprom.TierState) bool) {
		for upstream, c := range cascades {
			for _, v := range c.View() {
				if !v.Instant && !yield(weirprom.TierState{Upstream: upstream, Tier: v.Tier, Open: v.Phase != breaker.Closed}) {
					return
				}
			}
		}
	}
}

// chainsDown returns the upstreams whose models all have open breakers.
func chainsDown(tiers iter.Seq[weirprom.TierState]) (down []string) {
	asked := make(map[string]bool)
	for t := range tiers {
		asked[t.Upstream] = asked[t.Upstream] || !t.Open
	}
	for upstream, some := range asked {
		if !some {
			down = append(down, upstream)
		}
	}
	return down
}
