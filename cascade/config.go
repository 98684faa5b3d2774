package cascade

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A Config says which tiers there are, the best one first, and how they are
// treated. Durations of 0 mean the default.
type Config struct {
	Tiers []TierConfig

	// Deadline is the time for the whole call, unless the caller's context ends
	// sooner. 0 means 1m, below 0 means that only the caller's context counts.
	Deadline time.Duration
}

// A TierConfig is one tier.
type TierConfig struct {
	Name       string
	Confidence float64 // of its answers, from 0 to 1; what is written here is reported

	// Timeout is the longest that it may take for one call; 0 means all that the
	// tiers below it do not need of the deadline. See Run.
	Timeout time.Duration

	// Instant tiers take no time and cannot be down: static answers, a message.
	// They are asked even when the deadline has passed, and have no breaker.
	Instant bool

	// When is its condition: whether a call may come here, given what became of
	// the tiers above. Nil means always. It is called by all callers at once.
	When func(above []Attempt) bool

	// Health is its breaker; the zero Config means DefaultHealth.
	Health breaker.Config
}

// DefaultHealth is the breaker of a tier. Three failures in a row open it, as one
// failed call leads that call to the next tier, but must not take the tier from
// everybody. It stays open for a second, then for one and a half, and while it is
// half-open a call a second is a probe, whether or not those before it were answered:
// a tier that hangs is found to be back a second after it is. One good answer closes
// it. There is no ramp: callers who are given something worse while the tier is well gain nothing
// by it, and what may be in flight is a limit's to say.
func DefaultHealth() breaker.Config {
	return breaker.Config{
		Consecutive: 3, FirstOpen: time.Second, Open: 1500 * time.Millisecond, MaxOpen: longestQuota,
		Successes: 1, ProbeTimeout: time.Second, CountThrottled: true,
	}.WithDefaults()
}

const defaultDeadline = time.Minute

// WithDefaults is c with every default filled in.
func (c Config) WithDefaults() Config {
	c.Deadline = cmp.Or(c.Deadline, defaultDeadline)
	c.Tiers = slices.Clone(c.Tiers)
	for i := range c.Tiers {
		if t := &c.Tiers[i]; !t.Instant && t.Health == (breaker.Config{}) {
			t.Health = DefaultHealth()
		}
	}
	return c
}

// Validate reports every mistake in c, or nil.
func (c Config) Validate() error {
	v := new(mistakes)
	v.bad(len(c.Tiers) == 0, "tiers: there must be at least one")
	seen := map[string]bool{}
	for i, t := range c.Tiers {
		t.check(v, i, seen)
	}
	return errors.Join(v.errs...)
}

// check notes what is wrong with tier i. seen are the names so far.
func (t *TierConfig) check(v *mistakes, i int, seen map[string]bool) {
	v.bad(t.Name == "", "tier %d: name: must not be empty", i+1)
	v.bad(t.Name != "" && seen[t.Name], "tier %d: name %q: is used by another tier", i+1, t.Name)
	seen[t.Name] = true
	v.bad(!(t.Confidence >= 0 && t.Confidence <= 1), "tier %q: confidence %v: must be between 0 and 1", t.Name, t.Confidence)
	v.bad(t.Timeout < 0, "tier %q: timeout %v: must not be negative", t.Name, t.Timeout)
	v.bad(t.Instant && t.Timeout > 0, "tier %q: timeout %v: an instant tier has no timeout", t.Name, t.Timeout)
	v.bad(t.Instant && t.Health != (breaker.Config{}), "tier %q: health: an instant tier has no breaker", t.Name)
	if err := t.Health.Validate(); err != nil {
		v.errs = append(v.errs, fmt.Errorf("tier %q: health: %w", t.Name, err))
	}
}

type mistakes struct{ errs []error }

func (m *mistakes) bad(wrong bool, format string, args ...any) {
	if wrong {
		m.errs = append(m.errs, fmt.Errorf(format, args...))
	}
}
