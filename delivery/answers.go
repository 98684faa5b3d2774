package delivery

import (
	"context"
	"net/http"
	"time"
)

// Answers keep the first answers to direct calls under idempotency keys, durably. A key is known for as long as those
// of deliveries are.
type Answers interface {
	// Begin takes a key for a call. Another request under the key gets ErrKeyReused.
	Begin(ctx context.Context, c *Keyed) (Kept, error)

	// Finish says how a call ended that Begin let go. A call whose key was taken over changes nothing.
	Finish(ctx context.Context, c *Keyed, how Finish, a *KeptAnswer) error
}

// A Keyed is a direct call under an idempotency key.
type Keyed struct {
	Upstream, Tenant, Key string
	Print                 []byte    // see Request.Fingerprint
	Call                  string    // an ID of its own
	Until                 time.Time // the call has ended by then, or nobody knows how it did
}

// A KeptState says what is known of a key.
type KeptState uint8

const (
	Unknown   KeptState = iota // a call under the key did not end, and whether it was made is not known: this one may go
	FirstCall                  // there was none: it may go
	UnderWay                   // another one has begun, and has not ended
	Answered                   // there is an answer
)

// Kept is what is known of a key.
type Kept struct {
	State  KeptState
	Until  time.Time   // of what is under way
	Answer *KeptAnswer // if there is one
}

// A KeptAnswer is an answer as it was given.
type KeptAnswer struct {
	Status int
	Header http.Header
	Body   []byte
	Large  bool // the body was too large, or a stream, and is not there
}

// MaxKept is the largest body of an answer that is kept.
const MaxKept = 256 << 10

// A Finish says how a call ended.
type Finish uint8

const (
	Doubtful  Finish = iota // nobody knows whether it was made
	NotMade                 // it was not: the key is free again
	KeepFirst               // its answer is kept
)
