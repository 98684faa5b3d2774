package retry

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Why an attempt is not repeated.
var (
	ErrNotRetryable = errors.New("not worth repeating")
	ErrAdvice       = errors.New("the upstream asked not to retry")
	ErrUnsafe       = errors.New("a retry might do the work twice")
	ErrAttempts     = errors.New("attempts spent")
	ErrQuota        = errors.New("the upstream's quota is used up until it resets")
	ErrHint         = errors.New("the upstream asked for a longer wait than is allowed")
	ErrDeadline     = errors.New("the next wait would pass the deadline")

	// ErrProbe: the attempt was to find out whether the upstream is back, and it is not.
	ErrProbe = errors.New("no attempt succeeds yet")

	// ErrStarted: the answer failed when the caller had its beginning.
	ErrStarted = errors.New("the response had started")

	// ErrBudget is this program's own bound on retries; the upstream knows
	// nothing of it.
	ErrBudget = errors.New("the call's own retry budget is spent")
)

// A GaveUpError ends a call that failed. It unwraps to why it was not tried
// again and to what the last attempt returned.
type GaveUpError struct {
	Upstream  string
	Operation string
	Attempts  int             // made, the first included
	HeldBack  int             // attempts that were not made because nothing succeeded; see Holdoff
	Elapsed   time.Duration   // since the first began
	Wait      time.Duration   // the wait that was not begun; 0 if it did not come to that
	Why       error           // one of the Err values of this package
	Last      error           // of the last attempt
	Outcome   outcome.Outcome // of the last attempt
}

// Error reads "s3 put: gave up after 3 attempts in 1.2s: attempts spent: " and
// then the last error, or its code if there is none.
func (e *GaveUpError) Error() string {
	var b strings.Builder
	if name := strings.TrimSpace(e.Upstream + " " + e.Operation); name != "" {
		b.WriteString(name + ": ")
	}
	fmt.Fprintf(&b, "gave up after %s in %v", attempts(e.Attempts), brief(e.Elapsed))
	if e.HeldBack > 0 {
		fmt.Fprintf(&b, ", %d more suppressed because no attempt succeeds", e.HeldBack)
	}
	if e.Why != nil {
		fmt.Fprintf(&b, ": %v", e.Why)
	}
	if e.Wait > 0 {
		fmt.Fprintf(&b, " (%v)", brief(e.Wait))
	}
	if e.Last != nil {
		fmt.Fprintf(&b, ": %v", e.Last)
	} else if e.Outcome.Code != "" {
		fmt.Fprintf(&b, ": %s", e.Outcome.Code)
	}
	return b.String()
}

// Unwrap gives errors.Is and errors.As both the reason and the last error.
func (e *GaveUpError) Unwrap() []error {
	var errs []error
	for _, err := range []error{e.Why, e.Last} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprintf("%d attempts", n)
}

// brief drops the digits that nobody reads.
func brief(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}
