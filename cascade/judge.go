package cascade

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/classify"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Classify is how an error is understood unless Options say otherwise: what a
// *retry.GaveUpError knows of the last attempt, else the outcome of an error that
// implements outcome.Classifier, else that of classify.Error. ctx is the caller's.
func Classify(ctx context.Context, err error) outcome.Outcome {
	g, ok := errors.AsType[*retry.GaveUpError](err)
	if !ok {
		return classify.Error(ctx, err)
	}
	o := g.Outcome
	if why, ok := errors.AsType[outcome.Classifier](g.Why); ok {
		// The attempt failed, and its breaker has opened: that says how long.
		if r := why.Outcome(); refusal(&r) && r.Code == circuitOpen && !o.Hint.Quota && r.Hint.After > o.Hint.After {
			o.Hint.Said, o.Hint.After = true, r.Hint.After
		}
	}
	return o
}

// circuitOpen is the code of a refusal by a breaker.
const circuitOpen = "circuit_open"

// refusal reports whether an outcome is that of a call that a gate of weir's own
// did not let out.
func refusal(o *outcome.Outcome) bool { return o.Class == outcome.Canceled && o.Unsent }

// A verdict is what a call says of the tier's health.
type verdict struct {
	kind  kind
	after time.Duration // how long it wants to be left alone; 0 if it did not say
	quota bool          // a quota is used up
}

type kind uint8

const (
	nothing kind = iota // counts neither way
	unused              // nor was anything sent: another call may go instead
	lives               // it answered, though not with what was asked for
	works
	broken
	shut // its own breaker is open
)

func judge(o *outcome.Outcome) verdict {
	switch {
	case o.Class == outcome.OK:
		return verdict{kind: works}
	case o.Class == outcome.Rejected:
		return verdict{kind: lives}
	case refusal(o) && o.Code == circuitOpen:
		return verdict{kind: shut, after: max(0, o.Hint.After)}
	case refusal(o):
		return verdict{kind: unused}
	case o.Class == outcome.Canceled:
		return verdict{}
	}
	return verdict{kind: broken, after: max(0, o.Hint.After), quota: o.Hint.Quota}
}

// pause is how long a failure asks for the tier to be left alone, within bounds;
// 0 if it does not ask, or for so little that it is a failure like any other.
func (c *Cool) pause(v verdict) (d time.Duration, why Cause) {
	switch {
	case v.kind != broken:
		return 0, ""
	case v.quota && v.after > 0:
		return max(c.First, min(v.after, c.Quota)), QuotaUsedUp
	case v.quota:
		return c.Hint, QuotaUsedUp // asked again now and then: it does not say when it resets
	case v.after < c.First:
		return 0, ""
	}
	return min(v.after, c.Hint), Hinted
}
