package retry

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Reasons why an attempt is not repeated.
var (
	ErrNotRetryable = errors.New("not worth repeating")
	ErrAdvice       = errors.New("the upstream asked not to retry")
	ErrUnsafe       = errors.New("a retry might do the work twice")
	ErrAttempts     = errors.New("attempts spent")
	ErrQuota        = errors.New("the upstream's quota is used up until it resets")
	ErrHint         = errors.New("the upstream asked for a longer wait than is allowed")
	ErrDeadline     = errors.New("the next wait would pass the deadline")

	// ErrProbe means that the attempt was to find out whether the upstream works again, and failed.
	ErrProbe = errors.New("no attempt succeeds yet")

	// ErrStarted means that the response failed after the caller had received its beginning.
	ErrStarted = errors.New("the response had started")

	// ErrBudget is a bound of this program. The upstream is not involved.
	ErrBudget = errors.New("the call's own retry budget is spent")
)

// A GaveUpError ends a failed call. It unwraps to the reason why the call was not repeated and to the error of the last attempt.
// It may be shared by goroutines that do not change it.
type GaveUpError struct {
	Upstream  string
	Operation string
	Attempts  int             // number made
	HeldBack  int             // attempts skipped because no call succeeded; see Holdoff
	Elapsed   time.Duration   // since the first attempt began
	Wait      time.Duration   // the delay that was refused; 0 if there was none
	Why       error           // an Err value of this package
	Last      error           // of the last attempt
	Outcome   outcome.Outcome // of the last attempt
}

// Error returns a text such as "s3 put: gave up after 3 attempts in 1.2s: attempts spent: ", followed by the last error, or its
// code if there is none.
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

// Unwrap returns the reason and the last error.
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

// brief rounds to a readable precision.
func brief(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}
