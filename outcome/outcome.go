// Package outcome describes the result of an attempt. Retries, breakers and limits only use this description, not status codes.
package outcome

import (
	"fmt"
	"strings"
	"time"
)

// A Class is the result of an attempt, by the party responsible.
type Class uint8

const (
	Unknown   Class = iota // not classified; handled as Failed
	OK                     // the upstream did the work
	Throttled              // refused because of the rate and not executed
	Failed                 // the upstream failed; the work may have been done
	Rejected               // the caller's mistake; repeating cannot help
	Canceled               // the caller left; implies nothing about the upstream
)

// Classes lists every class, in order, for tables and metrics.
var Classes = [...]Class{Unknown, OK, Throttled, Failed, Rejected, Canceled}

var names = [...]string{"unknown", "ok", "throttled", "failed", "rejected", "canceled"}

// String returns the name in metrics and files: ok, throttled, failed, ...; "unknown" for an unknown value.
func (c Class) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// An Outcome is the result of one attempt. The zero Outcome is an attempt with an unknown result. It may be shared by
// goroutines that do not change it.
type Outcome struct {
	Class Class
	Code  string // the upstream's error code: "SlowDown", "503", "connection refused"; empty if OK

	// Undone means that the upstream certainly did nothing: the connection was never made, or the response proves the refusal.
	// Such an attempt may be repeated for any operation.
	Undone bool

	// Unsent means, in addition to Undone, that no request reached the upstream, so it cannot have counted one.
	Unsent bool

	// Own means that the outcome was reported by a program that is trusted only for its own calls. Limits settle the use, and a
	// hint pauses the call's pool. Breakers, and components that learn from outcomes, ignore it.
	Own bool

	Hint Hint

	// Usage is the actual consumption according to the response, by unit ("tokens"); nil if unknown.
	Usage map[string]int64
}

// Retryable reports whether the class justifies another attempt. Whether another attempt is safe is a separate question: see
// Undone.
func (o Outcome) Retryable() bool {
	return o.Class == Throttled || o.Class == Failed || o.Class == Unknown
}

// Advice is the upstream's advice on a retry.
type Advice uint8

const (
	Unsaid   Advice = iota // no advice
	Again                  // the upstream asked for a retry
	NotAgain               // the upstream asked for no retry
)

// A Hint is the upstream's information about when to retry.
type Hint struct {
	Advice Advice
	Said   bool          // After was specified; distinguishes an immediate retry from no information
	After  time.Duration // the time to wait, counted from the response; never negative

	// Quota means that an amount for a calendar day or longer is used up, not a rate: waiting a moment cannot help.
	Quota bool

	Limits []Level // from rate limit headers, one per limit and unit
}

// A Level is the state of a limit as the upstream reports it.
type Level struct {
	Name      string        // the upstream's name for the limit: "requests", "input-tokens", a policy name
	Limit     int64         // the full amount; 0 if unspecified
	Remaining int64         // the remaining amount; -1 if unspecified
	Reset     time.Duration // time until Remaining grows or is full again, as the upstream defines it; 0 if unspecified
	Window    time.Duration // the period of Limit; 0 if unspecified
}

// A Classifier is an error with its own outcome. Functions passed to Do may return such errors.
type Classifier interface {
	error
	Outcome() Outcome
}

// MarshalText returns the name of the class, for files.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText parses a name of String. It does not change c if there is an error.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range names {
		if name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("class %q: want one of %s", text, strings.Join(names[:], ", "))
}
