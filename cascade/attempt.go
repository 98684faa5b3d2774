package cascade

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// What a tier returns that has no answer although nothing is wrong with it.
var (
	// ErrPass means that it is not meant for this call. It was not asked.
	ErrPass = errors.New("not for this call")

	// ErrNothing means that it works but has no answer: nothing in the cache.
	ErrNothing = errors.New("no answer")

	// ErrElsewhere means that it works but does not know what the call asks for,
	// which another tier may: a model of another name. Unlike with ErrNothing, an
	// answer of a tier below is degraded.
	ErrElsewhere = errors.New("not known here")

	// ErrHurry means that the tier's time was up because its caller had set so little of
	// it: the tier has failed only if any caller would have waited so long.
	ErrHurry = errors.New("the caller's timeout was too short")
)

// ErrTimeout is why the context of a tier ends when its time is up. It is a
// deadline error to whoever asks.
var ErrTimeout error = timeout{}

type timeout struct{}

func (timeout) Error() string   { return "tier timed out" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }
func (timeout) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// Why says why a tier gave no answer.
type Why string

const (
	Failed   Why = "failed"    // asked in vain
	TimedOut Why = "timed_out" // asked, and its time was up
	Refused  Why = "refused"   // held back by a gate of weir's own; Code is the reason
	Passed   Why = "passed"    // not meant for this call
	Nothing  Why = "nothing"   // asked, but it has none
	IsOpen   Why = "open"      // not asked: its breaker is open; Code is why
	IsProbed Why = "probing"   // not asked: another call is asking whether it is up
	NoTime   Why = "no_time"   // not asked: the deadline had passed
)

// An Attempt is what became of a call at a tier that gave no answer.
type Attempt struct {
	Tier string
	Why  Why
	Code string        // the upstream's word, the reason of a refusal, or why its breaker opened; "" if there is none
	Wait time.Duration // how long until it may be worth asking; 0 if nobody knows
	Err  error         // what it returned; nil if it was not asked or has no answer
}

// Asked reports whether the call reached the tier's own code.
func (a Attempt) Asked() bool {
	switch a.Why {
	case Failed, TimedOut, Refused, Nothing:
		return true
	}
	return false
}

// unable reports whether the tier would have answered on a better day.
func (a *Attempt) unable() bool { return a.Why != Passed && a.Why != Nothing }

// A NoAnswerError says that no tier had an answer. It unwraps to what those
// returned that were asked.
type NoAnswerError struct {
	Attempts []Attempt // of every tier, in order

	// Wait is how long until one of them may be worth asking; 0 if nobody knows.
	Wait time.Duration
}

// Error reads "no tier answered: primary open for 1.2s: failures in a row; secondary failed: 503".
func (e *NoAnswerError) Error() string {
	var b strings.Builder
	b.WriteString("no tier answered")
	for i, a := range e.Attempts {
		b.WriteString([]string{": ", "; "}[min(i, 1)])
		b.WriteString(a.String())
	}
	return b.String()
}

// String reads "primary failed: 503" or "primary open for 1.2s".
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

// brief drops the digits that nobody reads.
func brief(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d
	}
	return d.Round(time.Millisecond)
}

// Unwrap gives errors.Is and errors.As what the tiers returned.
func (e *NoAnswerError) Unwrap() []error {
	var errs []error
	for _, a := range e.Attempts {
		if a.Err != nil {
			errs = append(errs, a.Err)
		}
	}
	return errs
}

// Outcome is what the error means to a weir, or a cascade, around this one: a
// failure, if an attempt was made that can have reached an upstream; else a
// refusal.
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

// noAnswer is the error of a call that no tier has answered. Its wait is the shortest that a tier has
// asked for; 0 if none has.
func noAnswer(all []Attempt) *NoAnswerError {
	e := &NoAnswerError{Attempts: all}
	for _, a := range all {
		if a.Wait > 0 && (e.Wait == 0 || a.Wait < e.Wait) {
			e.Wait = a.Wait
		}
	}
	return e
}
