package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Gate is a custom check that can refuse an attempt, in addition to the breaker and the limits of every upstream.
// Acquire and every attempt of a Run ask the gates after these, in order. Try does not ask them. If the gates take
// more than 10 ms, the limits are asked again. All calls share a Gate, so it must be safe for concurrent use.
type Gate interface {
	// Admit asks for one attempt, and may wait until ctx ends. It returns a function that weir calls exactly once
	// with the outcome (nil if the gate does not need it), or an error if there is no permit, usually a *Refusal. If
	// the attempt is not made after all, because a later gate refuses or a breaker has opened, the outcome is
	// outcome.Canceled. The call's maps belong to the caller and must not be changed.
	Admit(ctx context.Context, c Call) (report func(outcome.Outcome), err error)
}

// A Call describes one call for its policy. The zero Call costs one request, belongs to the default operation and is
// not safe to repeat.
type Call struct {
	Operation string
	API       string            // the API's name of the operation, if Operation is a class of several; see Policy.Undeclared
	Keys      map[string]string // values of the scopes: {"tenant": "acme"}
	Cost      map[string]int64  // by unit; requests default to 1. See limit.USD for dollars: below 0 means that the call has no price
	Estimated bool              // Cost is an estimate: if it exceeds what a limit can hold, the call costs all that the limit holds
	Safe      bool              // repeating it does no harm, even if it was executed
	Polls     bool              // a long poll: its caller calls again immediately. If the budget refuses a retry, the call ends only after the retry's wait
	Streams   bool              // its request body is a stream, which may be slow or silent
	Part      bool              // part of an exchange that was already admitted, such as a message of a connection; see Upstream.Admit
	ID        string            // correlation id, for events and logs
	Note      any               // any value of the caller for listeners of the call's Record, such as a trace; may be nil

	// Pool identifies the callers that share the upstream's hints, such as an API key and a model. A hint for one
	// call pauses all calls of its pool, and no calls of another pool. "" means that a hint applies to all calls that
	// are charged to the same limits under the same keys.
	Pool string

	// Credential is the hash of the credential that the caller sends and weir forwards to the upstream. A hint for
	// one credential pauses other credentials only if a second credential also receives a hint. NoCredential means
	// that this caller sends no credential, although other callers do. "" means that all calls use the same
	// credential, or need none. If
	// Credential is set, Pool must be equal to it or begin with it.
	Credential string

	// Caller is the name of the authenticated caller; "" if unknown. Calls with the same Caller count as calls of one
	// caller, even if they use several credentials.
	Caller string

	// Takes is the expected duration of an attempt; 0 if unknown. A call with a deadline does not wait for a turn
	// after which less time would remain.
	Takes time.Duration

	// Another is the expected duration of one more attempt, including the wait before it. If the call has a deadline
	// and another attempt is possible, the present attempt times out this long before the deadline. So an attempt
	// that hangs leaves time for another one. 0, or more than a third of the remaining time, reserves
	// nothing.
	Another time.Duration

	// MaxWait is the longest total wait of the call for limits, slots, pauses and between attempts. It is for calls
	// that another model or upstream can answer. A shorter wait of the policy takes precedence. 0 means the policy's
	// wait.
	MaxWait time.Duration

	// RetryFor is the longest total wait for retries, without the attempts themselves. It is for callers that have
	// not stated how long they wait. 0 means no bound except the policy and the caller's deadline.
	RetryFor time.Duration

	// Priority orders calls that wait for a slot, for a limit that a fleet shares, or under a Fair policy for any
	// limit. Normal means the priority of the operation.
	Priority limit.Priority

	// WaitingRoom bounds how many calls of Low priority wait. nil means no bound. Calls of other priorities do not
	// enter it.
	WaitingRoom WaitingRoom

	// Flow is the flow of the call under a Fair policy. "" means the value of the policy's scope in Keys.
	Flow string

	// Weight is the share of the call's flow among the flows of its priority, under a Fair policy. While both wait, a
	// flow of weight 3 gets three times as much as a flow of weight 1. 0 means 1. The maximum is 1,000.
	Weight int
}

// A WaitingRoom bounds how many calls wait, in all upstreams whose calls share it. Its methods must be safe for
// concurrent use and must not block.
type WaitingRoom interface {
	// Enter reports whether one more call may wait. If so, the call leaves the room exactly once.
	Enter() bool
	// Leave removes a call that has entered.
	Leave()
}

// A caller holds the fields of a Call that its permit needs for events and pauses.
type caller struct {
	id      string // Call.ID
	pool    string // Call.Pool
	attempt int32  // of the call, counted from 1

	credential string        // Call.Credential
	name       string        // Call.Caller
	probing    time.Duration // end of the pause of all credentials that the attempt probes; 0 if it is no probe

	recorded
}

// pausedBy reports whether an outcome asks for a pause. A used-up quota without a reset time pauses a pool, which
// calls again now and then. It pauses nothing if the call has no pool, because then the scope of the quota is
// unknown, or if the upstream advises against another attempt, because then money is missing and time does not help.
func (c *caller) pausedBy(o *outcome.Outcome) bool {
	if o.Class != outcome.Throttled {
		return false
	}
	return o.Hint.Said && o.Hint.After > 0 || o.Hint.Quota && c.pool != c.credential && !o.Hint.Said && o.Hint.Advice != outcome.NotAgain
}
