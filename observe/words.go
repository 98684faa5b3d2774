// Package observe holds what the packages that observe have in common: words for
// the reasons of things, fit for a label, and errors without secrets.
package observe

import (
	"context"
	"errors"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/retry"
)

// Other is the word for what has none.
const Other = "other"

// Reason is the word for why there is no permit: one of weir.Reasons, or Other.
func Reason(r weir.Reason) string {
	if slices.Contains(weir.Reasons[:], r) {
		return string(r)
	}
	return Other
}

// A reason and its word; the first that fits counts.
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

// Why is the word for why a call was given up: that of the refusal if it is one,
// or one of Whys.
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

// Whys lists every word of Why that is not a refusal's.
func Whys() []string {
	var words []string
	for _, r := range reasons {
		words = append(words, r.word)
	}
	slices.Sort(words)
	return append(slices.Compact(words), Other)
}
