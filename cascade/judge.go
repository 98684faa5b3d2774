package cascade

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// Classify is the default of Options.Classify. It returns the outcome of the last attempt for a *retry.GaveUpError, the
// outcome of an error that implements outcome.Classifier, and otherwise the result of classify.Error. ctx is the
// caller's context.
func Classify(ctx context.Context, err error) outcome.Outcome {
	if g, ok := errors.AsType[*retry.GaveUpError](err); ok {
		return g.Outcome
	}
	return classify.Error(ctx, err)
}

// refusal reports whether one of weir's own limits or breakers refused the call.
func refusal(o *outcome.Outcome) bool { return o.Class == outcome.Canceled && o.Unsent }

// A verdict is the result of a call for its tier's breaker. OK means that the tier works, rejected that it is reachable,
// canceled nothing, and all other classes that it is broken.
type verdict struct{ outcome.Outcome }

// Verdicts of calls without an outcome of the upstream.
var (
	works   = verdict{outcome.Outcome{Class: outcome.OK}}
	lives   = verdict{outcome.Outcome{Class: outcome.Rejected}}
	nothing = verdict{outcome.Outcome{Class: outcome.Canceled}}
)

// broken reports whether the call counts as a failure of its tier.
func (v *verdict) broken() bool {
	return v.Class != outcome.OK && v.Class != outcome.Rejected && v.Class != outcome.Canceled
}

// Limits on the open time that a hint can request: for a hint without a quota or without a quota's reset time, and for
// the reset of a quota.
const (
	longestHint  = 15 * time.Minute
	longestQuota = 31 * 24 * time.Hour
	leastHint    = time.Second // a shorter hint counts as an ordinary failure
)

// hint returns the open time that a failure requests, within the limits, or the zero Hint.
func (v *verdict) hint() outcome.Hint {
	h := v.Hint
	switch {
	case h.Quota && h.After > 0:
		return outcome.Hint{Said: true, After: max(leastHint, min(h.After, longestQuota))}
	case h.Quota:
		return outcome.Hint{Said: true, After: longestHint}
	case h.After >= leastHint:
		return outcome.Hint{Said: true, After: min(h.After, longestHint)}
	}
	return outcome.Hint{}
}
