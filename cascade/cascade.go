package cascade

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
)

// A Cascade is a configuration and what is known of its tiers. It is safe for
// concurrent use; make it with New.
type Cascade struct {
	clock   clock.Clock
	options Options
	plan    atomic.Pointer[plan]
	mu      sync.Mutex // held by Set
}

// Options are what a Cascade lives with. The zero Options will do.
type Options struct {
	Clock clock.Clock // nil means clock.System

	// Classify says what an error of a tier means; nil means Classify. What it
	// calls rejected ends the cascade. ctx is the caller's.
	Classify func(ctx context.Context, err error) outcome.Outcome

	// Changed hears of every tier that cools down, is probed, ramps or is up
	// again; nil means that nobody does. The changes of a tier come in order and
	// one at a time, outside all locks, on the goroutine of a call: it should
	// return soon. If it panics, that is ignored. For a listener that hangs the
	// next 256 changes of each tier are kept.
	Changed func(Change)
}

// A plan is a configuration in force, and the tiers it speaks of. Nobody changes
// it any more.
type plan struct {
	cfg   Config
	tiers []*tier // as in cfg.Tiers
}

// New is a Cascade whose tiers are all up. The error is that of Config.Validate.
func New(c Config, o Options) (*Cascade, error) {
	if o.Clock == nil {
		o.Clock = clock.System
	}
	if o.Classify == nil {
		o.Classify = Classify
	}
	cascade := &Cascade{clock: o.Clock, options: o}
	cascade.plan.Store(new(plan))
	return cascade, cascade.Set(c)
}

// Set puts another configuration in force, for calls that begin from now on. What
// is known of a tier is kept under its name; a tier that is gone is forgotten. If
// c has mistakes, all of them are returned and nothing changes.
func (c *Cascade) Set(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.WithDefaults()
	cfg.Tiers, cfg.Ramp = slices.Clone(cfg.Tiers), slices.Clone(cfg.Ramp)
	c.mu.Lock()
	defer c.mu.Unlock()
	old, next := c.plan.Load(), &plan{cfg: cfg}
	for _, t := range cfg.Tiers {
		next.tiers = append(next.tiers, old.keep(t.Name))
	}
	c.plan.Store(next)
	return nil
}

// Config is the configuration in force, every default filled in.
func (c *Cascade) Config() Config {
	cfg := c.plan.Load().cfg
	cfg.Tiers, cfg.Ramp = slices.Clone(cfg.Tiers), slices.Clone(cfg.Ramp)
	return cfg
}

func (p *plan) keep(name string) *tier {
	if t := p.find(name); t != nil {
		return t
	}
	t := &tier{name: name}
	t.publish()
	return t
}

func (p *plan) find(name string) *tier {
	for i := range p.tiers {
		if p.tiers[i].name == name {
			return p.tiers[i]
		}
	}
	return nil
}

// Cool takes a tier away from all callers for d; 0 or less means until Reset,
// a year at the most. It
// is for operators, and for what was learnt outside a call: an error within a
// stream that had begun well. Afterwards the tier is probed and ramps as usual.
// It reports whether there is such a tier; an instant one never cools.
func (c *Cascade) Cool(name string, d time.Duration) bool {
	if d <= 0 {
		d = longest
	}
	return c.force(name, func(s *state, now time.Duration) { s.leave(now, min(d, longest), ByHand) })
}

// Reset has a tier be up at once, whatever was known of it. It reports whether
// there is such a tier.
func (c *Cascade) Reset(name string) bool {
	return c.force(name, func(s *state, now time.Duration) {
		s.gen++ // what is under way no longer counts
		s.up(now, ByHand)
	})
}

const longest = 365 * 24 * time.Hour

func (c *Cascade) force(name string, do func(*state, time.Duration)) bool {
	p := c.plan.Load()
	for i, t := range p.tiers {
		if t.name == name && !p.cfg.Tiers[i].Instant {
			now := c.clock.Now()
			t.change(c, p, now, "", func(s *state) { do(s, now) })
			return true
		}
	}
	return false
}

// tell calls the listener, and survives it.
func (c *Cascade) tell(e Change) {
	defer func() { _ = recover() }()
	c.options.Changed(e)
}
