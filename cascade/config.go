package cascade

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/breaker"
)

// A Config specifies the tiers, best first, and their settings. A duration of 0 means the default. A Config is a value
// and may be shared if its slice is not changed.
type Config struct {
	Tiers []TierConfig

	// Deadline is the maximum time for the entire call, unless the caller's context ends earlier. 0 means 1m. A negative
	// value means that only the caller's context counts.
	Deadline time.Duration
}

// A TierConfig configures one tier.
type TierConfig struct {
	Name       string
	Confidence float64 // of its answers, from 0 to 1; reported unchanged

	// Timeout is the tier's maximum time for one call. 0 means the time until the deadline that the lower tiers do not
	// need. See Run.
	Timeout time.Duration

	// Instant tiers need no time and cannot fail, for example static answers and messages. They are asked even after the
	// deadline and have no breaker.
	Instant bool

	// When reports whether the tier applies to a call, given the attempts at the tiers above. Nil means always. It is
	// called concurrently.
	When func(above []Attempt) bool

	// Health configures its breaker. The zero Config means DefaultHealth.
	Health breaker.Config
}

// DefaultHealth returns the default breaker of a tier.
//
// Three consecutive failures open it. Each failed call goes to the next tier, but one failure must not close the tier to
// all callers. The breaker stays open for 1s the first time, and then for 1.5s. While it is half-open, one call per
// second is a probe, even if earlier probes have not returned. A hanging tier is therefore found to work again within a
// second. One success closes the breaker. There is no ramp: limits already bound the calls in flight, and callers would
// get worse answers without any benefit.
func DefaultHealth() breaker.Config {
	return breaker.Config{
		Consecutive: 3, FirstOpen: time.Second, Open: 1500 * time.Millisecond, MaxOpen: longestQuota,
		Successes: 1, ProbeTimeout: time.Second, CountThrottled: true,
	}.WithDefaults()
}

const defaultDeadline = time.Minute

// WithDefaults returns c with all defaults.
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

// Validate returns all mistakes in c, or nil.
func (c Config) Validate() error {
	v := new(mistakes)
	v.bad(len(c.Tiers) == 0, "tiers: there must be at least one")
	seen := map[string]bool{}
	for i, t := range c.Tiers {
		t.check(v, i, seen)
	}
	return errors.Join(v.errs...)
}

// check records the mistakes of tier i. seen has the names of the previous tiers.
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
