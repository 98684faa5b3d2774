package observe_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/retry"
)

func TestWhyKnowsEveryReason(t *testing.T) {
	for err, want := range map[error]string{
		retry.ErrNotRetryable: "not_retryable", retry.ErrAdvice: "advice", retry.ErrUnsafe: "unsafe",
		retry.ErrAttempts: "attempts", retry.ErrQuota: "quota", retry.ErrHint: "hint",
		retry.ErrDeadline: "deadline", retry.ErrBudget: "budget", retry.ErrProbe: "probe",
		httpx.ErrBodyTooLarge: "body_too_large", retry.ErrStarted: "started", weir.ErrTooMuch: "too_much", weir.ErrAttemptTimeout: "deadline",
		context.Canceled: "canceled", errors.New("something else"): "other",
	} {
		if got := observe.Why(fmt.Errorf("wrapped: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
		if !slices.Contains(observe.Whys(), want) {
			t.Errorf("%s is not in Whys", want)
		}
	}
	if got := observe.Why(nil); got != "other" {
		t.Errorf("nil: %s, want other", got)
	}
}

func TestReasonMakesNoNewWords(t *testing.T) {
	for _, r := range weir.Reasons {
		if got := observe.Reason(r); got != string(r) {
			t.Errorf("%s: %s", r, got)
		}
		if got := observe.Why(&weir.Refusal{Reason: r}); got != string(r) {
			t.Errorf("refusal %s: %s", r, got)
		}
	}
	if got := observe.Reason("whatever a caller sent"); got != "other" {
		t.Errorf("got %s, want other", got)
	}
}

func ExampleWhy() {
	fmt.Println(observe.Why(&retry.GaveUpError{Why: retry.ErrBudget}))
	// Output: budget
}
