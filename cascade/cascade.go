package cascade

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
)

// A Cascade has a configuration and the state of its tiers. It is safe for concurrent use. Create it with New.
type Cascade struct {
	clock   clock.Clock
	options Options
	plan    atomic.Pointer[plan]
	mu      sync.Mutex // held by Set
}

// Options configures a Cascade. The zero Options is valid.
type Options struct {
	Clock clock.Clock // nil means clock.System

	// Classify returns the meaning of a tier's error. nil means the function Classify. A rejected outcome ends the
	// cascade. ctx is the caller's context.
	Classify func(ctx context.Context, err error) outcome.Outcome

	// Changed is called when a tier's breaker changes its phase. It may be nil. The changes of a tier are reported in
	// order, one at a time. Changed runs outside all locks on the goroutine of a call, so it must return quickly. A
	// panic in it is ignored.
	Changed func(Change)
}

// A Change is a change of the phase of a tier's breaker.
type Change struct {
	Tier     string
	From, To breaker.Phase
	Why      breaker.Cause
	Code     string        // the upstream's code of the failure, if any
	For      time.Duration // how long the breaker stays open, if it opens
}

// A plan is an active configuration with its tiers. It is immutable.
type plan struct {
	cfg   Config
	tiers []*tier // same order as cfg.Tiers
}

// New returns a Cascade with all breakers closed. It returns the error of Config.Validate.
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

// Set activates another configuration for calls that start later. A tier keeps its state under its name. The state of a
// removed tier is dropped. If the configuration is invalid, Set returns all mistakes and changes nothing.
func (c *Cascade) Set(cfg Config) error {
	if err := cfg.Validate(); err != nil {
		return err
	}
	cfg = cfg.WithDefaults()
	c.mu.Lock()
	defer c.mu.Unlock()
	old, next := c.plan.Load(), &plan{cfg: cfg}
	now := c.clock.Now()
	for i := range cfg.Tiers {
		next.tiers = append(next.tiers, c.keep(now, old, &cfg.Tiers[i]))
	}
	c.plan.Store(next)
	return nil
}

// Config returns the active configuration with all defaults.
func (c *Cascade) Config() Config {
	cfg := c.plan.Load().cfg
	cfg.Tiers = slices.Clone(cfg.Tiers)
	return cfg
}

// keep returns the tier with that name and its state, or a new one.
func (c *Cascade) keep(now time.Duration, old *plan, cfg *TierConfig) *tier {
	if i := slices.IndexFunc(old.tiers, func(t *tier) bool { return t.name == cfg.Name }); i >= 0 {
		old.tiers[i].breaker.SetConfig(now, cfg.Health)
		return old.tiers[i]
	}
	return newTier(c, cfg)
}

// Now returns the time of the cascade's clock, for methods of a tier's breaker.
func (c *Cascade) Now() time.Duration { return c.clock.Now() }

// OnOpen calls f each time the breaker of a tier opens, until stop is called. A call that waits for the tier can then
// stop waiting. f is called outside all locks and must not block. It may still be called once while stop runs. For an
// unknown tier, f is never called.
func (c *Cascade) OnOpen(tier string, f func()) (stop func()) {
	for _, t := range c.plan.Load().tiers {
		if t.name != tier {
			continue
		}
		t.watchersMu.Lock()
		defer t.watchersMu.Unlock()
		if t.watchers == nil {
			t.watchers = make(map[*func()]bool)
		}
		t.watchers[&f] = true
		return func() {
			t.watchersMu.Lock()
			defer t.watchersMu.Unlock()
			delete(t.watchers, &f)
		}
	}
	return func() {}
}

// Breaker returns the breaker of a tier, for operators and for errors that occur after the call, such as an error within
// a stream. A caller should check it before a retry, because a lower tier may be better. It returns nil for an unknown
// tier and for an instant tier, which has no breaker.
func (c *Cascade) Breaker(tier string) *breaker.Breaker {
	p := c.plan.Load()
	for i, t := range p.tiers {
		if t.name == tier && !p.cfg.Tiers[i].Instant {
			return t.breaker
		}
	}
	return nil
}
