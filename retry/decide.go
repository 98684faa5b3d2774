package retry

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// An Attempt is one that has ended, as Decide needs to know it.
type Attempt struct {
	Number  int             // from 1
	Outcome outcome.Outcome // how it ended
	Safe    bool            // repeating the call does no harm: it is idempotent
	Prev    time.Duration   // the wait before this attempt; 0 for the first

	Bounded bool          // the call has a deadline
	Left    time.Duration // until then; read only if Bounded
}

// A Decision says what follows an attempt.
type Decision struct {
	Again bool          // make another attempt
	After time.Duration // the wait before it; with ErrHint and ErrDeadline, the wait that is refused
	Delay time.Duration // what After would be if the upstream had not asked for more; only if Again
	Why   error         // why not, one of the Err values of this package; nil if Again or if the attempt succeeded
}

// Decide says whether the attempt is repeated and after what wait. Of several
// reasons against it gives the one that is hardest to change. Chance comes from
// r as it does for Delay. The purse, which knows of other calls, comes after.
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

// against is what speaks against ever repeating such an outcome. The
// configured exclusions are asked first, then the upstream, whose advice beats
// every rule about codes and classes.
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

// worth reports whether an outcome is one that the config repeats: by its code, or its class.
func (c *Config) worth(o *outcome.Outcome) bool {
	if len(c.Codes) > 0 && slices.Contains(c.Codes, o.Code) {
		return true
	}
	if len(c.RetryOn) == 0 {
		return o.Retryable()
	}
	return slices.Contains(c.RetryOn, o.Class)
}

// wait is the delay, or the upstream's hint if that is longer. What cannot end
// in time is refused now and not when time is up.
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

// spread is the most that chance adds to a hint, so that callers who were told
// the same instant do not return together: a tenth, at most 5s. It is never
// taken off, because the upstream would refuse whoever comes early.
func spread(hint time.Duration) time.Duration { return min(hint/10, 5*time.Second) }
