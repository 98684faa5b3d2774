package cascade

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// A Config says which tiers there are, the best one first, and how they are
// treated. Durations of 0 mean the default.
type Config struct {
	Tiers []TierConfig

	// Deadline is the time for the whole call, unless the caller's context ends
	// sooner. 0 means 1m, below 0 means that only the caller's context counts.
	Deadline time.Duration

	// Failures in a row, of all callers, start a cool-down: one failed call leads
	// that call to the next tier, but must not take the tier from everybody. 0
	// means 3. Hints and quotas do not wait for it; see Cool.
	Failures int

	Cool  Cool
	Probe time.Duration // a probe not ended by then, nor by the end of its own time, is lost; 0 means 1m

	// Ramp is how a tier comes back, after a probe has succeeded; nil means
	// DefaultRamp. An empty Ramp that is not nil lets all calls through at once.
	Ramp []Step
}

// A TierConfig is one tier.
type TierConfig struct {
	Name       string
	Confidence float64 // of its answers, from 0 to 1; what is written here is reported

	// Timeout is the longest that it may take for one call; 0 means its fair
	// part of the deadline. See Run.
	Timeout time.Duration

	// Instant tiers take no time and cannot be down: static answers, a message.
	// They are asked even when the deadline has passed, and never cool down.
	Instant bool

	// When is its condition: whether a call may come here, given what became of
	// the tiers above. Nil means always. It is called by all callers at once.
	When func(above []Attempt) bool
}

// Cool says how long a tier is left alone.
type Cool struct {
	// The first time, unless the upstream says; 0 means 1s. What it says counts
	// as a hint if it is at least so long, and then cools the tier at once.
	First time.Duration
	Most  time.Duration // each further failure doubles it up to here; 0 means 1m
	Hint  time.Duration // longest that a hint can ask for, and for a quota without one; 0 means 15m
	Quota time.Duration // longest that a quota's reset can be away; 0 means 31 days
}

// A Step is a part of the way back. It is over after so many successes, or after
// its time, whichever comes first. While a call that it let through is under way
// and none has succeeded the time is longer, by up to Config.Probe: a tier that
// hangs must not be given more meanwhile.
type Step struct {
	Percent   int           // of the calls are let through, from 1 to 100
	Successes int           // at least 1
	For       time.Duration // above 0
}

// DefaultRamp is 10, 25 and 50 %, and then all.
func DefaultRamp() []Step {
	return []Step{
		{Percent: 10, Successes: 5, For: 5 * time.Second},
		{Percent: 25, Successes: 5, For: 5 * time.Second},
		{Percent: 50, Successes: 10, For: 5 * time.Second},
	}
}

const defaultDeadline = time.Minute

// WithDefaults is c with every default filled in.
func (c Config) WithDefaults() Config {
	c.Deadline = cmp.Or(c.Deadline, defaultDeadline)
	c.Failures = cmp.Or(c.Failures, 3)
	c.Probe = cmp.Or(c.Probe, time.Minute)
	c.Cool = c.Cool.withDefaults()
	if c.Ramp == nil {
		c.Ramp = DefaultRamp()
	}
	return c
}

func (c Cool) withDefaults() Cool {
	c.First = cmp.Or(c.First, time.Second)
	c.Most = cmp.Or(c.Most, max(time.Minute, c.First))
	c.Hint = cmp.Or(c.Hint, max(15*time.Minute, c.Most))
	c.Quota = cmp.Or(c.Quota, max(31*24*time.Hour, c.Hint))
	return c
}

// Validate reports every mistake in c, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	v := new(mistakes)
	v.bad(len(c.Tiers) == 0, "tiers: there must be at least one")
	seen := map[string]bool{}
	for i, t := range c.Tiers {
		t.check(v, i, seen)
	}
	v.bad(c.Failures < 0, "failures %d: must not be negative", c.Failures)
	v.bad(c.Probe < 0, "probe %v: must not be negative", c.Probe)
	c.Cool.check(v)
	for i, s := range c.Ramp {
		s.check(v, i)
		v.bad(i > 0 && s.Percent < c.Ramp[i-1].Percent, "ramp %d: percent %d: must not be under that of the step before, %d", i+1, s.Percent, c.Ramp[max(i-1, 0)].Percent)
	}
	return errors.Join(v.errs...)
}

func (t *TierConfig) check(v *mistakes, i int, seen map[string]bool) {
	v.bad(t.Name == "", "tier %d: name: must not be empty", i+1)
	v.bad(t.Name != "" && seen[t.Name], "tier %d: name %q: is that of another tier", i+1, t.Name)
	seen[t.Name] = true
	v.bad(!(t.Confidence >= 0 && t.Confidence <= 1), "tier %q: confidence %v: must be between 0 and 1", t.Name, t.Confidence)
	v.bad(t.Timeout < 0, "tier %q: timeout %v: must not be negative", t.Name, t.Timeout)
	v.bad(t.Instant && t.Timeout > 0, "tier %q: timeout %v: an instant tier has none", t.Name, t.Timeout)
}

func (c Cool) check(v *mistakes) {
	v.bad(c.First < 0, "cool first %v: must not be negative", c.First)
	v.bad(c.Most < c.First, "cool most %v: must not be under first %v", c.Most, c.First)
	v.bad(c.Hint < c.First, "cool hint %v: must not be under first %v", c.Hint, c.First)
	v.bad(c.Quota < c.Hint, "cool quota %v: must not be under hint %v", c.Quota, c.Hint)
}

func (s Step) check(v *mistakes, i int) {
	v.bad(s.Percent < 1 || s.Percent > 100, "ramp %d: percent %d: must be between 1 and 100", i+1, s.Percent)
	v.bad(s.Successes < 1, "ramp %d: successes %d: must be at least 1", i+1, s.Successes)
	v.bad(s.For <= 0, "ramp %d: for %v: must be above 0", i+1, s.For)
}

type mistakes struct{ errs []error }

func (m *mistakes) bad(wrong bool, format string, args ...any) {
	if wrong {
		m.errs = append(m.errs, fmt.Errorf(format, args...))
	}
}
