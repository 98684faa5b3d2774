package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Config determines when a breaker opens and when it closes again. It counts reported tickets. The upstream reports complete
// calls, each with possibly several attempts.
//
// There are three rules for opening: Share, Consecutive and Failures. Any of them is sufficient. A rule that is 0 is not used. If
// all three are 0, the default rules apply: half of at least 20 calls that ended within 10 seconds failed, or 10 consecutive
// calls over at least 5 seconds failed. The zero Config stays open for a second, half as long again after each failed probe, up
// to 30 seconds, and closes after 2 successful probes. It is a value and may be shared.
type Config struct {
	// Share is the fraction of the calls that ended within Window, above 0 and up to 1, whose failure opens it, if there were at
	// least MinCalls.
	Share    float64
	MinCalls int // 0 means 20

	// Consecutive failures open it, at any distance in time. They do not expire: only a success resets them. This rule is for
	// upstreams with few calls. ConsecutiveFor is the minimum time from the first to the last of them. Without it, a burst of
	// calls for the same broken resource opens the breaker for all calls. 0 means no minimum, or 5s with the default rules.
	Consecutive    int
	ConsecutiveFor time.Duration

	// SuccessTakesOne makes a success subtract one failure from the count for Consecutive, instead of all. Then failures of more
	// than half of the calls open it in the end, with any number of calls in between. Failures do not expire.
	SuccessTakesOne bool

	// Failures within Window open it, with any number of successes. This rule suits an upstream with few calls that must not be
	// called while it is broken. With many calls, random failures would open it.
	Failures int

	Window time.Duration // how long failures and calls count; 0 means 10s, or 1m with Failures

	// FirstOpen is the first open time. After each failed probe, the next open time is half as long again, up to Open. So the
	// breaker closes soon after a short outage, and probes rarely in a long one. 0 means Open if that is set, otherwise 1s.
	FirstOpen time.Duration

	Successes    int           // consecutive successful probes that close it; 0 means 2
	Open         time.Duration // maximum open time unless the upstream requests another; 0 means 30s
	MaxOpen      time.Duration // maximum time that the upstream can request; 0 means 10m, or Open if that is longer
	ProbeTimeout time.Duration // a probe that is not reported by then is lost; 0 means 30s

	// CountThrottled makes throttled outcomes failures. Otherwise they only prove that the upstream is up.
	CountThrottled bool

	// Off disables the rules: only ForceOpen opens it.
	Off bool
}

// minOpen is the minimum to which a hint can shorten Open. Otherwise an upstream that fails and requests an immediate retry would
// be probed without pause.
const minOpen = time.Second

// WithDefaults returns c with all defaults.
func (c Config) WithDefaults() Config {
	if c.Failures == 0 && c.Consecutive == 0 && c.Share == 0 {
		c.Share, c.Consecutive = 0.5, 10
		c.ConsecutiveFor = cmp.Or(c.ConsecutiveFor, 5*time.Second)
	}
	if c.Failures > 0 {
		c.Window = cmp.Or(c.Window, time.Minute)
	}
	c.Window = cmp.Or(c.Window, 10*time.Second)
	c.MinCalls = cmp.Or(c.MinCalls, 20)
	c.Successes = cmp.Or(c.Successes, 2)
	c.FirstOpen = cmp.Or(c.FirstOpen, c.Open, time.Second)
	c.Open = cmp.Or(c.Open, 30*time.Second)
	c.MaxOpen = cmp.Or(c.MaxOpen, max(10*time.Minute, c.Open))
	c.ProbeTimeout = cmp.Or(c.ProbeTimeout, 30*time.Second)
	return c
}

// Validate returns all errors in c, or nil.
func (c Config) Validate() error {
	c = c.WithDefaults()
	var errs []error
	bad := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, fmt.Errorf("%s %v: %s", field, value, reason))
		}
	}
	bad(c.Failures < 0, "failures", c.Failures, "must not be negative")
	bad(c.Consecutive < 0, "consecutive", c.Consecutive, "must not be negative")
	bad(c.ConsecutiveFor < 0, "consecutive for", c.ConsecutiveFor, "must not be negative")
	bad(!(c.Share >= 0 && c.Share <= 1), "share", c.Share, "must be between 0 and 1")
	bad(c.MinCalls < 0, "min calls", c.MinCalls, "must not be negative")
	bad(c.Successes < 0, "successes", c.Successes, "must not be negative")
	bad(c.Window < time.Millisecond, "window", c.Window, "must be at least 1ms")
	bad(c.Open < 0, "open", c.Open, "must not be negative")
	bad(c.FirstOpen < 0, "first open", c.FirstOpen, "must not be negative")
	bad(c.FirstOpen > c.Open && c.Open >= 0, "first open", c.FirstOpen, fmt.Sprintf("must not be above open %v", c.Open))
	bad(c.ProbeTimeout < 0, "probe timeout", c.ProbeTimeout, "must not be negative")
	bad(c.MaxOpen < c.Open, "max open", c.MaxOpen, fmt.Sprintf("must not be below open %v", c.Open))
	return errors.Join(errs...)
}

// spell returns the open time without a hint. before is the previous open time, or 0.
func (c Config) spell(before time.Duration) time.Duration {
	if before == 0 {
		return c.FirstOpen
	}
	return min(before+before/2, c.Open)
}

// openFor returns the open time after a failure with the hint h. The hint replaces the spell, longer or shorter, between minOpen
// (or Open, if that is less) and MaxOpen.
func (c Config) openFor(h outcome.Hint, spell time.Duration) time.Duration {
	if !h.Said {
		return spell
	}
	return min(max(h.After, min(minOpen, c.Open)), c.MaxOpen)
}

// A verdict is what an outcome implies about the upstream.
type verdict uint8

const (
	nothing verdict = iota // no effect
	lives                  // it answered: counts for a probe, otherwise no effect
	works
	broken
)

// judge only uses the class. Other fields of an outcome are for retries and limits.
func (c Config) judge(class outcome.Class) verdict {
	switch {
	case class == outcome.OK:
		return works
	case class == outcome.Canceled:
		return nothing
	case class == outcome.Rejected, class == outcome.Throttled && !c.CountThrottled:
		return lives
	}
	return broken
}
