package retry

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Config determines which attempts are repeated, how often and when. It is plain data and may be shared. The zero Config makes
// three attempts with full jitter. Validate it once. Even an invalid Config never results in a negative delay.
type Config struct {
	Attempts int // total number; 0 means 3, and 1 turns retries off

	Base         time.Duration // ceiling of the first delay; 0 means 100ms
	ThrottleBase time.Duration // the same after a throttled attempt; 0 means Base
	Cap          time.Duration // maximum delay before jitter; 0 means 20s

	Jitter Jitter        // 0 means FullJitter
	Low    float64       // minimum factor of RangeJitter; 0 means 0.5
	High   float64       // maximum factor of RangeJitter; 0 means 1.5
	Added  time.Duration // maximum that AddedJitter adds; 0 means 500ms

	// MaxHint is the longest delay that an upstream can request. A longer one ends the call immediately, so that another tier can
	// answer. 0 means 60s.
	MaxHint time.Duration

	// HintSlack bounds the increase of a delay by a hint, as the AWS SDKs do with 5s. With it, a retry can come earlier than
	// requested. 0 means no bound.
	HintSlack time.Duration

	RetryOn  []outcome.Class // classes to repeat; empty means throttled, failed and unknown
	Codes    []string        // codes to repeat with any class
	NotCodes []string        // codes that are never repeated; this takes precedence
}

const (
	defaultAttempts = 3
	defaultBase     = 100 * time.Millisecond
	defaultCap      = 20 * time.Second
	defaultLow      = 0.5
	defaultHigh     = 1.5
	defaultAdded    = 500 * time.Millisecond
	defaultMaxHint  = time.Minute
)

// WithDefaults returns c with all defaults. It is equivalent to c, and fit for a status page.
func (c Config) WithDefaults() Config {
	c.Attempts = cmp.Or(c.Attempts, defaultAttempts)
	c.Base = cmp.Or(c.Base, defaultBase)
	c.ThrottleBase = cmp.Or(c.ThrottleBase, c.Base)
	c.Cap = cmp.Or(c.Cap, defaultCap)
	c.Low = cmp.Or(c.Low, defaultLow)
	c.High = cmp.Or(c.High, defaultHigh)
	c.Added = cmp.Or(c.Added, defaultAdded)
	c.MaxHint = cmp.Or(c.MaxHint, defaultMaxHint)
	if len(c.RetryOn) == 0 {
		c.RetryOn = []outcome.Class{outcome.Throttled, outcome.Failed, outcome.Unknown}
	}
	return c
}

// Validate returns all errors in c, each with its field, value and reason.
func (c Config) Validate() error {
	var m mistakes
	m.when(c.Attempts < 0, "attempts %d: must not be negative", c.Attempts)
	m.negative("base", c.Base)
	m.negative("throttle_base", c.ThrottleBase)
	m.negative("cap", c.Cap)
	m.negative("added", c.Added)
	m.negative("max_hint", c.MaxHint)
	m.negative("hint_slack", c.HintSlack)
	_, err := c.Jitter.MarshalText()
	m.when(err != nil, "jitter %d: must be one of %v", uint8(c.Jitter), jitters)

	d := c.WithDefaults()
	m.when(d.Cap < d.Base, "cap %v: must not be below base %v", d.Cap, d.Base)
	m.when(d.Cap < d.ThrottleBase && d.ThrottleBase != d.Base, "cap %v: must not be below throttle_base %v", d.Cap, d.ThrottleBase)
	m.factor("low", d.Low)
	m.factor("high", d.High)
	m.when(d.Low > d.High, "low %v: must not be above high %v", d.Low, d.High)
	for _, class := range c.RetryOn {
		m.when(!repeatable(class), "retry_on %v: must be throttled, failed, unknown or rejected", class)
	}
	m.codes("codes", c.Codes)
	m.codes("not_codes", c.NotCodes)
	for _, code := range c.Codes {
		m.when(slices.Contains(c.NotCodes, code), "codes %q: is also in not_codes", code)
	}
	return errors.Join(m...)
}

// repeatable reports whether RetryOn may contain the class. Successful and canceled calls are never repeated.
func repeatable(class outcome.Class) bool {
	return class <= outcome.Rejected && class != outcome.OK
}

type mistakes []error

func (m *mistakes) when(wrong bool, format string, args ...any) {
	if wrong {
		*m = append(*m, fmt.Errorf(format, args...))
	}
}

func (m *mistakes) negative(field string, d time.Duration) {
	m.when(d < 0, "%s %v: must not be negative", field, d)
}

// factor requires a number that is positive, not NaN, and reasonable.
func (m *mistakes) factor(field string, f float64) {
	m.when(!(f > 0 && f <= 1000), "%s %v: must be above 0 and at most 1000", field, f)
}

func (m *mistakes) codes(field string, codes []string) {
	m.when(slices.Contains(codes, ""), "%s %q: must not hold an empty code", field, codes)
}
