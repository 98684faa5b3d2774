package lambdax

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// Records remember which messages are being handled and which were. They are safe for concurrent use, also by several
// functions at once. Time is that of the wall, as several machines share them: DynamoRecords and MemoryRecords.
type Records interface {
	// Begin claims a message until an instant, unless it is Held by another claim or Completed. owner is the name
	// of the claim; the same Begin may be made again when nobody knows whether it was done.
	Begin(ctx context.Context, id, owner string, until time.Time) (Claim, error)

	// End ends a claim. It is false if another claim has taken its place: then nothing was changed.
	End(ctx context.Context, c Claim, how Ending, keep time.Time) (bool, error)
}

// A State is that of a message as Begin finds it.
type State uint8

const (
	Held      State = iota // somebody else is handling it
	Ours                   // it was claimed by this Begin
	Completed              // it need not be handled again
)

// A Claim is what Begin found.
type Claim struct {
	ID    string
	Owner string
	State State

	// With Ours:
	Attempts int // claims that were not given back, this one included
	Stalls   int // claims before this one, one after the other, of which nobody told how they ended
}

// An Ending is how a claim ends.
type Ending uint8

const (
	GaveBack Ending = iota // nothing was done: the claim does not count
	Tried                  // it has to be handled again
	Handled                // it is over, and remembered until keep
)

// MaxStalls is how often a message may be claimed without an end before it is taken for what ends the function.
const MaxStalls = 3

// skew is by how much the clocks of two functions may differ.
const skew = 2 * time.Second

// recordID is what a message is remembered by: one table may serve several queues.
func recordID(m *events.SQSMessage) string { return m.EventSourceARN + "/" + m.MessageId }

func newOwner() string { return rand.Text() }
