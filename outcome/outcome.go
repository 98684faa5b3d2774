// Package outcome says how an attempt ended. It is the one answer that retry,
// breaker and limits all read; none of them looks at a status code.
package outcome

import (
	"fmt"
	"strings"
	"time"
)

// A Class says who is to blame for how an attempt ended.
type Class uint8

const (
	Unknown   Class = iota // not classified; handled as Failed
	OK                     // the upstream did the work
	Throttled              // refused for rate; nothing was done
	Failed                 // the upstream broke; the work may have been done
	Rejected               // the caller's fault; repeating cannot help
	Canceled               // the caller left; says nothing of the upstream
)

// Classes lists every class, in order, for tables and metrics.
var Classes = [...]Class{Unknown, OK, Throttled, Failed, Rejected, Canceled}

var names = [...]string{"unknown", "ok", "throttled", "failed", "rejected", "canceled"}

// String is the short word, as in metrics and files: ok, throttled, failed, ...; "unknown" for a class that there is not.
func (c Class) String() string {
	if int(c) < len(names) {
		return names[c]
	}
	return "unknown"
}

// An Outcome is how one attempt ended. The zero Outcome is an attempt of which
// nothing is known.
type Outcome struct {
	Class Class
	Code  string // the upstream's own word for it: "SlowDown", "503", "connection refused"; empty if OK

	// Undone means it is certain that the upstream did nothing: the
	// connection was never made, or the answer proves the refusal. Such an
	// attempt may be repeated whatever it was.
	Undone bool

	// Unsent means more than Undone: no request reached the upstream, so it
	// cannot have counted one.
	Unsent bool

	// Own means that it was told by somebody who is believed for its own calls
	// alone. Limits settle what was used, and a hint pauses the pool of the call;
	// breakers, and what learns from outcomes, observe nothing of it.
	Own bool

	Hint Hint

	// Usage is what the answer says was really consumed, by unit ("tokens");
	// nil if it does not say.
	Usage map[string]int64
}

// Retryable reports whether the class is worth another attempt. Whether another
// attempt is safe is a different question; see Undone.
func (o Outcome) Retryable() bool {
	return o.Class == Throttled || o.Class == Failed || o.Class == Unknown
}

// Advice is the upstream's own word on whether to try again.
type Advice uint8

const (
	Unsaid   Advice = iota // the upstream did not say
	Again                  // it asked to be tried again
	NotAgain               // it asked not to be tried again
)

// A Hint is what the upstream says about when to come back.
type Hint struct {
	Advice Advice
	Said   bool          // After was said; tells "come back at once" from silence
	After  time.Duration // how long to stay away, counted from the answer; never negative

	// Quota means that what ran out is not a rate but an amount for a
	// calendar day or longer: waiting a moment cannot help.
	Quota bool

	Limits []Level // what rate limit headers report, one per limit and unit
}

// A Level is a limit as the upstream reports it.
type Level struct {
	Name      string        // the upstream's name for the limit: "requests", "input-tokens", a policy name
	Limit     int64         // the full amount; 0 if not said
	Remaining int64         // what is left; -1 if not said
	Reset     time.Duration // until Remaining grows or is full again, as the upstream defines it; 0 if not said
	Window    time.Duration // what Limit is counted over; 0 if not said
}

// A Classifier is an error that knows its own outcome. Errors that a Go program
// returns from Do may implement it.
type Classifier interface {
	error
	Outcome() Outcome
}

// MarshalText and UnmarshalText let a class stand in files by its name.
func (c Class) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText knows the words of String. An error leaves c as it is.
func (c *Class) UnmarshalText(text []byte) error {
	for i, name := range names {
		if name == string(text) {
			*c = Class(i)
			return nil
		}
	}
	return fmt.Errorf("class %q: want one of %s", text, strings.Join(names[:], ", "))
}
