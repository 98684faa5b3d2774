// Package adaptive learns the rate that an upstream can sustain from the outcomes of attempts. A throttle cuts the
// rate. Success at a rate that is really used lets it grow again.
//
// State implements the rule. Controller applies it in a process.
package adaptive

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"time"
)

// A Rule determines how the rate grows after a cut.
type Rule uint8

const (
	// Cubic remembers the rate of the last cut. It returns to it quickly, stays near it for long, and then grows with
	// increasing steps. It has the shape of RFC 9438, in relative terms so that 5 and 5,000 per second behave alike.
	Cubic Rule = iota
	// Multiply grows by a factor each interval. It is simple, but wastes the difference to the limit between cuts,
	// and unequal processes stay unequal.
	Multiply
	// Add grows by the same step each interval. Processes that share an upstream without knowing each other converge
	// to equal shares.
	Add
	// MultiplyEach grows by a factor at every success and cuts at every throttle, regardless of when the attempt was
	// sent. It respects only Min and Max. Many designs request exactly that. At more than a few calls per second a
	// cut is undone before its effect shows, see TestSimulationOfS3.
	MultiplyEach
)

var rules = [...]string{"cubic", "multiply", "add", "multiply-each"}

const anyRule = "want cubic, multiply, add or multiply-each"

func (r Rule) String() string {
	if int(r) < len(rules) {
		return rules[r]
	}
	return fmt.Sprintf("rule %d", uint8(r))
}

// MarshalText and UnmarshalText write and read a rule by its name.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r *Rule) UnmarshalText(text []byte) error {
	for i, name := range rules {
		if strings.EqualFold(name, string(text)) {
			*r = Rule(i)
			return nil
		}
	}
	return fmt.Errorf("rule %q: %s", text, anyRule)
}

// A Config configures a learned rate. The zero Config does not learn: On must be set. Rates are in units of the limit
// per second.
type Config struct {
	On    bool
	Rule  Rule
	Start float64 // the first rate; 0 means Max, or 1 with Unknown
	Min   float64 // the lowest rate; 0 means Max/100, or 0.01 with Unknown
	Max   float64 // the highest rate; 0 means the limit's own rate

	// Unknown means that the limit's own rate is only an upper bound, far above the expected rate. The rate doubles
	// every second from Start until the first throttle, and later every two seconds while many calls succeed above the
	// rate of the last cut. After 10 times Recovery without use it is halved.
	Unknown bool

	Cut      float64       // factor on a throttle; 0 means 0.5, or 0.7 for cubic without Unknown
	Grow     float64       // factor per interval for multiply, per success for multiply-each; 0 means 1.05
	Step     float64       // share of Max per interval for add; 0 means 0.01
	Recovery time.Duration // time until cubic is back at the rate of the last cut; 0 means 20s, or 10s with Unknown

	Interval    time.Duration // at most one growth step per interval; 0 means 1s, or 250ms for cubic
	CutInterval time.Duration // at most one cut per interval, or per 2 round trips if that is longer; 0 means 1s
	UsedShare   float64       // the rate grows only while at least this share of it is used; 0 means 0.5
}

// WithDefaults returns c with all defaults, for a limit of this rate.
func (c Config) WithDefaults(limit float64) Config {
	if c.Max <= 0 || c.Max > limit {
		c.Max = limit
	}
	if c.Unknown {
		c.Start, c.Min = min(cmp.Or(c.Start, 1), c.Max), cmp.Or(c.Min, 0.01)
		c.Cut, c.Recovery = cmp.Or(c.Cut, 0.5), cmp.Or(c.Recovery, 10*time.Second)
	}
	c.Start = min(cmp.Or(c.Start, c.Max), c.Max)
	c.Min = min(cmp.Or(c.Min, c.Max/100), c.Start)
	if c.Rule == Cubic {
		c.Cut = cmp.Or(c.Cut, 0.7)
		c.Interval = cmp.Or(c.Interval, 250*time.Millisecond)
	}
	c.Cut = cmp.Or(c.Cut, 0.5)
	c.Grow = cmp.Or(c.Grow, 1.05)
	c.Step = cmp.Or(c.Step, 0.01)
	c.Recovery = cmp.Or(c.Recovery, 20*time.Second)
	c.Interval = cmp.Or(c.Interval, time.Second)
	c.CutInterval = cmp.Or(c.CutInterval, time.Second)
	c.UsedShare = cmp.Or(c.UsedShare, 0.5)
	return c
}

// Validate returns all mistakes, joined.
func (c Config) Validate() error {
	var errs []error
	bad := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, fmt.Errorf("%s %v: %s", field, value, reason))
		}
	}
	for _, f := range []struct {
		name string
		v    float64
	}{{"start", c.Start}, {"min", c.Min}, {"max", c.Max}} {
		bad(!(f.v >= 0 && f.v < 1e18), f.name, f.v, "must be a rate per second, not negative")
	}
	bad(c.Max > 0 && c.Start > c.Max, "start", c.Start, fmt.Sprintf("must not be above max %v", c.Max))
	bad(c.Start > 0 && c.Min > c.Start, "min", c.Min, fmt.Sprintf("must not be above start %v", c.Start))
	bad(c.Max > 0 && c.Min > c.Max, "min", c.Min, fmt.Sprintf("must not be above max %v", c.Max))
	bad(!(c.Cut >= 0 && c.Cut < 1), "cut", c.Cut, "must be between 0 and 1")
	bad(!(c.Grow == 0 || c.Grow > 1 && c.Grow <= 10), "grow", c.Grow, "must be above 1, at most 10")
	bad(!(c.Step >= 0 && c.Step <= 1), "step", c.Step, "must be between 0 and 1")
	bad(!(c.UsedShare >= 0 && c.UsedShare <= 1), "used share", c.UsedShare, "must be between 0 and 1")
	bad(c.Recovery < 0, "recovery", c.Recovery, "must not be negative")
	bad(c.Interval < 0, "interval", c.Interval, "must not be negative")
	bad(c.CutInterval < 0, "cut interval", c.CutInterval, "must not be negative")
	bad(int(c.Rule) >= len(rules), "rule", c.Rule, anyRule)
	return errors.Join(errs...)
}
