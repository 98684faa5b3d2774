package retry

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// An Attempt describes a completed attempt for Decide.
type Attempt struct {
	Number  int             // from 1
	Outcome outcome.Outcome // its result
	Safe    bool            // the call is idempotent: repeating it does no harm
	Prev    time.Duration   // the delay before this attempt; 0 for the first

	Bounded bool          // the call has a deadline
	Left    time.Duration // time until the deadline; only used if Bounded
}

// A Decision is the result of Decide.
type Decision struct {
	Again bool          // make another attempt
	After time.Duration // the delay before it; with ErrHint and ErrDeadline, the refused delay
	Delay time.Duration // After without the upstream's hint; only if Again
	Why   error         // why there is no other attempt: an Err value of this package; nil if Again or if the attempt succeeded
}

// Decide decides whether the attempt is repeated, and after which delay. Of several reasons against a retry it returns the one
// that is hardest to change. Random numbers come from r as in Delay. A Purse, which considers other calls, applies afterwards.
func (c Config) Decide(a Attempt, r *rand.Rand) Decision {
	o := &a.Outcome
	if o.Class == outcome.OK {
		return Decision{}
	}
	if why := c.against(o); why != nil {
		return Decision{Why: why}
	}
	if !a.Safe && !o.Undone {
		return Decision{Why: ErrUnsafe}
	}
	if a.Number >= cmp.Or(c.Attempts, defaultAttempts) {
		return Decision{Why: ErrAttempts}
	}
	delay := c.delay(a.Number, a.Prev, o.Class, r)
	wait, why := c.wait(&a, delay, r)
	if why != nil {
		return Decision{After: wait, Why: why}
	}
	return Decision{Again: true, After: wait, Delay: delay}
}

// against returns the reason why such an outcome is never repeated. The configured exclusions come first, then the upstream's
// advice, which overrides the rules for codes and classes.
func (c *Config) against(o *outcome.Outcome) error {
	switch {
	case o.Class == outcome.Canceled || len(c.NotCodes) > 0 && slices.Contains(c.NotCodes, o.Code):
		return ErrNotRetryable
	case o.Hint.Advice == outcome.NotAgain:
		return ErrAdvice
	case o.Hint.Advice != outcome.Again && !c.worth(o):
		return ErrNotRetryable
	case o.Hint.Quota:
		return ErrQuota
	}
	return nil
}

// worth reports whether the config repeats an outcome, by its code or its class.
func (c *Config) worth(o *outcome.Outcome) bool {
	if len(c.Codes) > 0 && slices.Contains(c.Codes, o.Code) {
		return true
	}
	if len(c.RetryOn) == 0 {
		return o.Retryable()
	}
	return slices.Contains(c.RetryOn, o.Class)
}

// wait returns the delay, or the upstream's hint if that is longer. If the delay would exceed the deadline, it fails now.
func (c *Config) wait(a *Attempt, wait time.Duration, r *rand.Rand) (time.Duration, error) {
	if hint := &a.Outcome.Hint; hint.Said && hint.After > wait {
		latest := plus(wait, positive(c.HintSlack, forever))
		asked := min(hint.After, latest)
		if asked > positive(c.MaxHint, defaultMaxHint) {
			return asked, ErrHint
		}
		wait = min(plus(asked, draw(r, spread(asked))), latest)
	}
	if a.Bounded && wait >= a.Left {
		return wait, ErrDeadline
	}
	return wait, nil
}

// spread returns the maximum jitter added to a hint, so that callers with the same hint do not return at the same time: a tenth,
// at most 5s. It is never subtracted, because the upstream would refuse early callers.
func spread(hint time.Duration) time.Duration { return min(hint/10, 5*time.Second) }
