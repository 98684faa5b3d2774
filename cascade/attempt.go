package cascade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Errors for a tier that has no answer but has not failed.
var (
	// ErrPass means that the tier does not apply to this call and was not asked.
	ErrPass = errors.New("does not apply to this call")

	// ErrNothing means that the tier works but has no answer, for example because of a cache miss.
	ErrNothing = errors.New("no answer")

	// ErrElsewhere means that the tier works but does not have what the call asks for, for example a model. Another tier
	// may have it. Unlike after ErrNothing, an answer from a lower tier is degraded.
	ErrElsewhere = errors.New("does not have what the call requests")

	// ErrHurry means that the caller's short timeout ended the tier's attempt. It only counts as a failure if the tier
	// had the time that any caller would give it.
	ErrHurry = errors.New("the caller's timeout was too short")
)

// ErrTimeout is the cause with which a tier's context ends at its timeout. It matches context.DeadlineExceeded.
var ErrTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "tier timed out" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
func (timeout) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// Why is the reason why a tier gave no answer.
type Why string

const (
	Failed   Why = "failed"    // asked, but failed
	TimedOut Why = "timed_out" // asked, but timed out
	Refused  Why = "refused"   // refused by one of weir's own limits or breakers; Code is the reason
	Passed   Why = "passed"    // does not apply to this call
	Nothing  Why = "nothing"   // asked, but has no answer
	IsOpen   Why = "open"      // not asked: its breaker is open; Code is the cause
	IsProbed Why = "probing"   // not asked: another call is probing it
	NoTime   Why = "no_time"   // not asked: the deadline had passed
)

// An Attempt describes a call at a tier that gave no answer.
type Attempt struct {
	Tier string
	Why  Why
	Code string        // the upstream's error code, the reason of a refusal, or the cause of the open breaker; may be empty
	Wait time.Duration // time until a retry may succeed; 0 if unknown
	Err  error         // the error that the tier returned; nil if it was not asked or has no answer
}

// Asked reports whether the call reached the tier's own code.
func (a Attempt) Asked() bool {
	switch a.Why {
	case Failed, TimedOut, Refused, Nothing:
		return true
	}
	return false
}

// unable reports whether the tier failed or was unavailable.
func (a *Attempt) unable() bool { return a.Why != Passed && a.Why != Nothing }

// A NoAnswerError reports that no tier had an answer. It unwraps to the errors of the tiers that were asked.
type NoAnswerError struct {
	Attempts []Attempt // of every tier, in order

	// Wait is the time until a retry at one of the tiers may succeed. It is 0 if unknown.
	Wait time.Duration
}

// Error returns for example "no tier answered: primary open for 1.2s: failures in a row; secondary failed: 503".
func (e *NoAnswerError) Error() string {
	var b strings.Builder
	b.WriteString("no tier answered")
	for i, a := range e.Attempts {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(a.String())
	}
	return b.String()
}

// String returns for example "primary failed: 503" or "primary open for 1.2s".
func (a Attempt) String() string {
	s := a.Tier + " " + strings.ReplaceAll(string(a.Why), "_", " ")
	if a.Wait > 0 {
		s += fmt.Sprintf(" for %v", brief(a.Wait))
	}
	switch {
	case a.Err != nil:
		s += ": " + a.Err.Error()
	case a.Code != "":
		s += ": " + a.Code
	}
	return s
}

// brief rounds durations to milliseconds, except shorter ones.
func brief(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}

// Unwrap returns the errors of the tiers for errors.Is and errors.As.
func (e *NoAnswerError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// Outcome is the meaning of the error for an enclosing weir or cascade. It is a failure if an attempt may have reached
// an upstream, and otherwise a refusal.
func (e *NoAnswerError) Outcome() outcome.Outcome {
	o := outcome.Outcome{Class: outcome.Canceled, Code: "no_answer", Undone: true, Unsent: true}
	for _, a := range e.Attempts {
		if a.Why == Failed || a.Why == TimedOut {
			o = outcome.Outcome{Class: outcome.Failed, Code: "no_answer"}
		}
	}
	o.Hint = outcome.Hint{Said: e.Wait > 0, After: e.Wait}
	return o
}

var _ outcome.Classifier = (*NoAnswerError)(nil)

// noAnswer returns the error of a call without an answer. Its Wait is the shortest nonzero wait of a tier.
func noAnswer(all []Attempt) *NoAnswerError {
	e := &NoAnswerError{Attempts: all}
	for _, a := range all {
		if a.Wait > 0 && (e.Wait == 0 || a.Wait < e.Wait) {
			e.Wait = a.Wait
		}
	}
	return e
}
