package serve

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// tiersOf prepares the tiers of a cascade.
func (f *fitting) tiersOf(c *config.Cascade) (cascade.Config, []gateway.Tier, error) {
	plan := cascade.Config{Deadline: cmp.Or(c.Deadline, defaultDeadline), Tiers: []cascade.TierConfig{{Name: "primary", Confidence: 1}}}
	tiers := make([]gateway.Tier, 1, len(c.Tiers)+1)
	for _, t := range c.Tiers {
		own := gateway.Tier{Upstream: t.Upstream, Model: t.Model, Cached: t.Cached, Messages: t.Messages, Contact: t.Contact}
		if t.Static() {
			var err error
			if own.Answers, err = f.book(t); err != nil {
				return plan, nil, err
			}
		}
		tiers = append(tiers, own)
		plan.Tiers = append(plan.Tiers, cascade.TierConfig{
			Name: t.Name, Confidence: t.Confidence, Timeout: t.Timeout, Instant: t.Cached || t.Static() || len(t.Messages) > 0,
		})
	}
	return plan, tiers, plan.Validate()
}

// cascade returns the cascade of an upstream. It keeps the state of its tiers.
func (m *models) cascade(upstream string, plan cascade.Config) (*cascade.Cascade, error) {
	if old := m.cascades[upstream]; old != nil {
		return old, old.Set(plan)
	}
	made, err := cascade.New(plan, cascade.Options{Changed: func(c cascade.Change) { m.changed(upstream, c) }})
	if err == nil {
		m.cascades[upstream] = made
	}
	return made, err
}

const defaultDeadline = time.Minute

// book returns the answers of a tier: from a file, which it reads now, or from the reader of a table.
func (f *fitting) book(t config.Tier) (*answers.Book, error) {
	if t.Table != nil {
		r, err := f.table(&t)
		if err != nil {
			return nil, err
		}
		return r.Book(), nil
	}
	b := &answers.Book{Threshold: t.Threshold}
	return b, b.Load(t.Answers)
}

// beginTiers exports the tiers of an upstream before the first answer.
func (f *fitting) beginTiers(upstream string, plan cascade.Config) {
	f.metrics.Begin(upstream, "primary")
	for _, t := range plan.Tiers {
		f.metrics.Begin(upstream, t.Name)
	}
}
