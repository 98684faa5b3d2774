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

	// Changed is called with every tier whose breaker changes its phase; nil means that
	// nobody does. The changes of a tier come in order and one at a time, outside
	// all locks, on the goroutine of a call: it should return soon. If it panics,
	// that is ignored.
	Changed func(Change)
}

// A Change is a change of the phase of a tier's breaker.
type Change struct {
	Tier     string
	From, To breaker.Phase
	Why      breaker.Cause
	Code     string        // the upstream's word for the failure, if it was one
	For      time.Duration // how long it stays open, if it opens
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

// Config is the configuration in force, every default filled in.
func (c *Cascade) Config() Config {
	cfg := c.plan.Load().cfg
	cfg.Tiers = slices.Clone(cfg.Tiers)
	return cfg
}

// keep is the tier of that name, with what is known of it.
func (c *Cascade) keep(now time.Duration, old *plan, cfg *TierConfig) *tier {
	if i := slices.IndexFunc(old.tiers, func(t *tier) bool { return t.name == cfg.Name }); i >= 0 {
		old.tiers[i].breaker.SetConfig(now, cfg.Health)
		return old.tiers[i]
	}
	return newTier(c, cfg)
}

// Now is the present of the cascade's clock, as methods of a tier's breaker want it.
func (c *Cascade) Now() time.Duration { return c.clock.Now() }

// OnOpen has f called whenever the breaker of a tier opens, until stop is called: a call that waits for the tier need not wait on.
// f is called outside all locks, must not block, and may be called once more while stop is. A tier that does not exist never opens.
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

// Breaker is that of a tier, for operators, and for what was learnt outside a call: an error within a
// stream that had begun well. A caller that repeats what failed should look at it before: there
// may be a better tier below. It is nil if there is no such tier, or an instant one, which is always up.
func (c *Cascade) Breaker(tier string) *breaker.Breaker {
	p := c.plan.Load()
	for i, t := range p.tiers {
		if t.name == tier && !p.cfg.Tiers[i].Instant {
			return t.breaker
		}
	}
	return nil
}
