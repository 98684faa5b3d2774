package weir

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Gate is whatever else can refuse an attempt, beside the breaker and the
// limits that every upstream has. It is asked after them, in order, by Acquire and for every
// attempt of a Run; Try does not ask it. Where it takes more than 10 ms the limits are asked once more. It is shared by all calls, and so must be safe for
// concurrent use.
type Gate interface {
	// Admit asks for one attempt, and may wait for it while ctx lasts. It
	// returns what is to hear of the outcome, exactly once (nil if nothing is),
	// or why there is no permit: a *Refusal, as a rule. If the attempt is not made
	// after all, as a later gate refuses or a breaker has opened meanwhile, what is
	// to hear is told outcome.Canceled. The call's maps are the caller's own, and
	// must not be changed.
	Admit(ctx context.Context, c Call) (report func(outcome.Outcome), err error)
}

// A Call is one call as its policy needs to know it. The zero Call costs one
// request, belongs to the default operation and is not safe to repeat.
type Call struct {
	Operation string
	API       string            // the operation as the API names it, if Operation is a class of several; see Policy.Undeclared
	Keys      map[string]string // the values of scopes: {"tenant": "acme"}
	Cost      map[string]int64  // by unit; a request is 1 unless it is named here
	Estimated bool              // Cost is a guess: one that is more than a limit ever holds is taken for all that it holds
	Safe      bool              // repeating it does no harm, even if it was done already
	Polls     bool              // a long poll: its caller asks again immediately. Where the budget refuses a retry, it ends after the retry's wait
	Streams   bool              // the body of its request is a stream, which may be silent, and slow
	Part      bool              // of an exchange that was admitted as a whole, such as a message of a connection; see Upstream.Admit
	ID        string            // correlation id, for events and logs
	Note      any               // of the caller's, for those who hear of the call's Record, such as a trace; nil for none

	// Pool is all those for whom the upstream's hints are meant, such as an API key and
	// a model: what it says to one of them holds all of them, and nobody else. "" means
	// that a hint holds whoever is charged to the same limits under the same keys.
	Pool string

	// Credential is the credential of the caller's own, hashed, that is sent to the upstream: what the upstream
	// says to one holds others only if a second one receives it too. NoCredential is a call that brings none
	// where others do. "" means that all calls have the same credential, or need none. Where it is set, Pool
	// is the credential, or begins with it.
	Credential string

	// Caller is the name of the caller that weir has authenticated; "" if it is not known. What a single caller
	// receives counts as one caller's, whatever its number of credentials.
	Caller string

	// Takes is how long an attempt is likely to take, 0 if nobody knows. A call with a
	// deadline does not wait for a turn that would leave it less.
	Takes time.Duration

	// Another is how long one more attempt is likely to take, with the wait before it. If
	// the call has a deadline, an attempt that another may follow leaves as much of its
	// time, and has failed if it takes longer: one that hangs is not waited for to the end.
	// 0, and more than a third of what is left, leave nothing.
	Another time.Duration

	// MaxWait is the longest that the call waits, for limits, slots, pauses and between attempts together, where another model or
	// upstream could answer instead. A shorter wait of the policy holds. 0 means the policy's.
	MaxWait time.Duration

	// RetryFor is the longest that the call waits for its retries together, without the attempts themselves, where its caller has not
	// stated how long it waits. 0 means as long as the policy and the caller's deadline allow.
	RetryFor time.Duration

	// Priority says which calls go first of those that wait for a slot among the attempts in flight, or for a limit: one that a
	// fleet shares, or any if the policy is Fair. Normal leaves it to the operation.
	Priority limit.Priority

	// WaitingRoom bounds how many calls of Low priority wait; nil is no bound. Calls of other priorities do not enter it.
	WaitingRoom WaitingRoom

	// Flow is whose turn the call waits for under a policy that is Fair; "" means that the keys say.
	Flow string

	// Weight is that of the call's flow among those of its priority, under a policy
	// that is Fair: with 3, it gets three times what one of 1 gets while both wait. 0
	// means 1; 1,000 is the most.
	Weight int
}

// A WaitingRoom bounds how many calls wait, in all upstreams whose calls share it. Its methods are called from any goroutine and
// must not block.
type WaitingRoom interface {
	// Enter reports whether one more call may wait. If so, the call leaves the room exactly once.
	Enter() bool
	// Leave ends the wait of a call that has entered.
	Leave()
}

// A caller is what a permit keeps of its Call, for events and pauses.
type caller struct {
	id      string // Call.ID
	pool    string // Call.Pool
	attempt int32  // of the call, from 1

	credential string        // Call.Credential
	name       string        // Call.Caller
	probing    time.Duration // until when the pause of all credentials lasts that the attempt probes; 0 if it probes none

	recorded
}

// pausedBy reports whether an answer asks for a pause. A quota that does not say when it
// resets is asked again now and then; but not even that for what is not of a pool, of
// which nobody knows what else the quota is for, nor where the upstream wants no more
// attempts: what is missing then is no time but money.
func (c *caller) pausedBy(o *outcome.Outcome) bool {
	if o.Class != outcome.Throttled {
		return false
	}
	return o.Hint.Said && o.Hint.After > 0 || o.Hint.Quota && c.pool != c.credential && !o.Hint.Said && o.Hint.Advice != outcome.NotAgain
}
