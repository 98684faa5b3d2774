// Package observe contains what the observing packages share: label values for reasons, and error texts without secrets.
package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/retry"
)

// Other is the label value of an unknown reason.
const Other = "other"

// Reason returns the label value for the reason of a refusal: an element of weir.Reasons, or Other.
func Reason(r weir.Reason) string {
	if slices.Contains(weir.Reasons[:], r) {
		return string(r)
	}
	return Other
}

// reasons maps errors to label values. The first match counts.
var reasons = [...]struct {
	err  error
	word string
}{
	{retry.ErrAttempts, "attempts"},
	{retry.ErrProbe, "probe"},
	{retry.ErrBudget, "budget"},
	{retry.ErrDeadline, "deadline"},
	{retry.ErrUnsafe, "unsafe"},
	{retry.ErrHint, "hint"},
	{retry.ErrAdvice, "advice"},
	{retry.ErrQuota, "quota"},
	{retry.ErrNotRetryable, "not_retryable"},
	{retry.ErrStarted, "started"},
	{httpx.ErrBodyTooLarge, "body_too_large"},
	{weir.ErrTooMuch, "too_much"},
	{context.Canceled, "canceled"},
	{context.DeadlineExceeded, "deadline"},
}

// Why returns the label value for the reason why a call was given up: the reason of the refusal if err is one, otherwise an
// element of Whys.
func Why(err error) string {
	if r, ok := errors.AsType[*weir.Refusal](err); ok {
		return Reason(r.Reason)
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.word
		}
	}
	return Other
}

// Whys lists every result of Why that is not the reason of a refusal.
func Whys() []string {
	var words []string
	for _, r := range reasons {
		words = append(words, r.word)
	}
	slices.Sort(words)
	return append(slices.Compact(words), Other)
}
