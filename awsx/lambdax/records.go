package lambdax

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Records remember the messages that are being handled and that were handled. They are safe for concurrent use, also by several
// functions. Times are wall-clock times, because several machines share them. Implementations are DynamoRecords and
// MemoryRecords.
type Records interface {
	// Begin claims a message until an instant, unless another claim is Held or it is Completed. owner identifies the claim. The
	// same Begin may be repeated if its result is unknown.
	Begin(ctx context.Context, id, owner string, until time.Time) (Claim, error)

	// End ends a claim. It returns false, and changes nothing, if another claim has replaced it.
	End(ctx context.Context, c Claim, how Ending, keep time.Time) (bool, error)
}

// A State is the state of a message that Begin finds.
type State uint8

const (
	Held      State = iota // another claim is being handled
	Ours                   // this Begin claimed it
	Completed              // it must not be handled again
)

// A Claim is the result of Begin.
type Claim struct {
	ID    string
	Owner string
	State State

	// With state Ours:
	Attempts int // claims that were not given back, including this one
	Stalls   int // consecutive earlier claims that were never ended
}

// An Ending is the way in which a claim ends.
type Ending uint8

const (
	GaveBack Ending = iota // no handling began: the claim does not count
	Tried                  // it must be handled again
	Handled                // it is complete, and remembered until keep
)

// MaxStalls is the number of claims without an end after which a message is assumed to crash the function.
const MaxStalls = 3

// skew is the maximum difference between the clocks of two functions.
const skew = 2 * time.Second

// recordID returns the key of a message's record. It contains the queue, because several queues may share a table.
func recordID(m *events.SQSMessage) string { return m.EventSourceARN + "/" + m.MessageId }

func newOwner() string { return rand.Text() }
