package breaker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Config says when a breaker opens and when it closes again. It counts what its
// tickets are reported for: the upstream's reports are of whole calls, which may have
// been several attempts.
//
// There are three rules for opening, and any of them is enough: Share, Consecutive and
// Failures. A rule that is 0 is not used. If all three are 0, the default rules hold:
// half of at least 20 calls that ended within 10 seconds failed, or 10 in a row over at
// least 5 seconds did. The zero Config stays open for a second, half as long again after
// each probe that fails, up to 30 seconds, and closes after 2 good probes.
type Config struct {
	// Share is the part of the calls that ended within Window, above 0 and up to 1,
	// whose failure opens it, once there were MinCalls.
	Share    float64
	MinCalls int // 0 means 20

	// Consecutive failures open it however far apart they are: time does not
	// lessen them, only a success does. It is the rule for upstreams that are
	// called seldom. ConsecutiveFor is the least time from the first to the last of
	// them: without it a burst of calls for the same broken thing opens it for all.
	// 0 means none, or 5s where the default rules hold.
	Consecutive    int
	ConsecutiveFor time.Duration

	// SuccessTakesOne has a success take one failure off what Consecutive counts, instead of all: failures that are more than half
	// of the calls open it in the end, however many come between, and time does not lessen them.
	SuccessTakesOne bool

	// Failures within Window open it, whatever succeeded meanwhile. It suits an
	// upstream that is called seldom and must be left in peace when it breaks; where
	// there are many calls it opens on noise.
	Failures int

	Window time.Duration // how far back failures and calls are counted; 0 means 10s, or 1m with Failures

	// FirstOpen is how long it stays open at first. Each probe that fails makes
	// the next time half as long again, up to Open: a short outage is over soon
	// after its end, a long one is left in peace. 0 means Open if that is given,
	// else 1s.
	FirstOpen time.Duration

	Successes    int           // good probes in a row that close it; 0 means 2
	Open         time.Duration // how long it stays open at most unless the upstream says; 0 means 30s
	MaxOpen      time.Duration // longest time the upstream can ask for; 0 means 10m, or Open if that is longer
	ProbeTimeout time.Duration // a probe not reported by then is lost; 0 means 30s

	// CountThrottled makes throttled outcomes failures. Without it they only
	// prove that the upstream lives.
	CountThrottled bool

	// Off means that nothing but ForceOpen opens it.
	Off bool
}

// minOpen is the least that a hint can shorten Open to. An upstream that fails
// and says "come back at once" would otherwise be probed without pause.
const minOpen = time.Second

// WithDefaults is c with every default filled in.
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

// Validate reports every mistake in c, or nil.
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
	bad(c.MaxOpen < c.Open, "max open", c.MaxOpen, fmt.Sprintf("must not be under open %v", c.Open))
	return errors.Join(errs...)
}

// spell is how long to stay open without a hint, if it was last for before, or 0.
func (c Config) spell(before time.Duration) time.Duration {
	if before == 0 {
		return c.FirstOpen
	}
	return min(before+before/2, c.Open)
}

// openFor is how long to stay open after a failure that came with h. What the
// upstream says about itself is believed over the spell, longer or shorter,
// within minOpen (or Open, if that is less) and MaxOpen.
func (c Config) openFor(h outcome.Hint, spell time.Duration) time.Duration {
	if !h.Said {
		return spell
	}
	return min(max(h.After, min(minOpen, c.Open)), c.MaxOpen)
}

// A verdict is what an outcome says of the upstream.
type verdict uint8

const (
	nothing verdict = iota // counts neither way
	lives                  // it answered; counts for a probe, and neither way otherwise
	works
	broken
)

// judge reads the class alone: whatever else an outcome says is for retries and limits.
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
