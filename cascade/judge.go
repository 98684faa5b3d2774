package cascade

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
	"github.com/seed1158cd35/weir/retry"
)

// Classify is how an error is understood unless Options say otherwise: what a
// *retry.GaveUpError knows of the last attempt, else the outcome of an error that
// implements outcome.Classifier, else that of classify.Error. ctx is the caller's.
func Classify(ctx context.Context, err error) outcome.Outcome {
	if g, ok := errors.AsType[*retry.GaveUpError](err); ok {
		return g.Outcome
	}
	return classify.Error(ctx, err)
}

// refusal reports whether an outcome is that of a call that a gate of weir's own
// did not let out.
func refusal(o *outcome.Outcome) bool { return o.Class == outcome.Canceled && o.Unsent }

// A verdict is what a call says of the tier's health, as its breaker counts: OK that
// it works, rejected that it lives, canceled nothing, and all else that it is broken.
type verdict struct{ outcome.Outcome }

// The verdicts of calls that have no outcome of the upstream's.
var (
	works   = verdict{outcome.Outcome{Class: outcome.OK}}
	lives   = verdict{outcome.Outcome{Class: outcome.Rejected}}
	nothing = verdict{outcome.Outcome{Class: outcome.Canceled}}
)

// broken reports whether the call counts against its tier.
func (v *verdict) broken() bool {
	return v.Class != outcome.OK && v.Class != outcome.Rejected && v.Class != outcome.Canceled
}

// How long a hint can have a tier left alone: one that is not about a quota, or about one
// and does not say when it resets; and the reset of a quota.
const (
	longestHint  = 15 * time.Minute
	longestQuota = 31 * 24 * time.Hour
	leastHint    = time.Second // less is a failure like any other
)

// hint is what a failure asks for, within bounds; the zero Hint if it does not ask.
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
