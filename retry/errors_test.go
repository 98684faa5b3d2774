package retry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func TestGaveUpErrorReadsWell(t *testing.T) {
	last := errors.New("503 SlowDown")
	for _, tt := range []struct {
		err  retry.GaveUpError
		want string
	}{
		{retry.GaveUpError{Upstream: "s3", Operation: "put", Attempts: 3, Elapsed: 1234567 * time.Microsecond, Why: retry.ErrAttempts, Last: last},
			"s3 put: gave up after 3 attempts in 1.235s: attempts spent: 503 SlowDown"},
		{retry.GaveUpError{Upstream: "s3", Attempts: 1, Elapsed: 1500 * time.Nanosecond, Wait: time.Hour, Why: retry.ErrHint, Last: last},
			"s3: gave up after 1 attempt in 1.5µs: the upstream asked for a longer wait than is allowed (1h0m0s): 503 SlowDown"},
		{retry.GaveUpError{Operation: "put", Attempts: 2, Elapsed: time.Second, Why: retry.ErrBudget, Outcome: outcome.Outcome{Code: "SlowDown"}},
			"put: gave up after 2 attempts in 1s: the call's own retry budget is spent: SlowDown"},
		{retry.GaveUpError{}, "gave up after 0 attempts in 0s"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestGaveUpErrorUnwrapsToReasonAndCause(t *testing.T) {
	e := &retry.GaveUpError{Why: retry.ErrDeadline, Last: &reply{3}}
	if !errors.Is(e, retry.ErrDeadline) || errors.Is(e, retry.ErrAttempts) {
		t.Errorf("%v: wrong reason", e)
	}
	if r, ok := errors.AsType[*reply](e); !ok || r.n != 3 {
		t.Errorf("%v: last error lost", e)
	}
	// A refusal here must not match the context's own deadline.
	if errors.Is(e, context.DeadlineExceeded) {
		t.Errorf("%v: is a deadline that ran out", e)
	}
	if got := (&retry.GaveUpError{}).Unwrap(); len(got) != 0 {
		t.Errorf("nothing unwraps to %v", got)
	}
}
