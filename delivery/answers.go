package delivery

import (
	"context"
	"net/http"
	"time"
)

// Answers stores the first responses to direct calls under idempotency keys, durably. A key is kept for as long as the
// keys of deliveries. Answers is safe for concurrent use.
type Answers interface {
	// Begin takes a key for a call. It returns ErrKeyReused if the key was used for a different request.
	Begin(ctx context.Context, c *Keyed) (Kept, error)

	// Finish records how a call ended that Begin allowed. It changes nothing if another call took over the key.
	Finish(ctx context.Context, c *Keyed, how Finish, a *KeptAnswer) error
}

// A Keyed is a direct call under an idempotency key.
type Keyed struct {
	Upstream, Tenant, Key string
	Print                 []byte    // see Request.Fingerprint
	Call                  string    // a unique ID
	Until                 time.Time // when the call has ended at the latest; after it, the outcome is unknown
}

// A KeptState is the state of a key.
type KeptState uint8

const (
	Unknown   KeptState = iota // an earlier call did not end, and may have been made: this call may proceed
	FirstCall                  // there was no earlier call: this call may proceed
	UnderWay                   // another call has begun and has not ended
	Answered                   // there is a response
)

// Kept is the state of a key, with its response.
type Kept struct {
	State  KeptState
	Until  time.Time   // of a call that is under way
	Answer *KeptAnswer // if State is Answered
}

// A KeptAnswer is a response as the caller got it.
type KeptAnswer struct {
	Status int
	Header http.Header
	Body   []byte
	Large  bool // the body was too large or a stream, and is not stored
}

// MaxKept is the largest body of a response that is stored, in bytes.
const MaxKept = 256 << 10

// A Finish is how a call ended.
type Finish uint8

const (
	Doubtful  Finish = iota // it may have been made or not
	NotMade                 // it was not made: the key is free again
	KeepFirst               // its response is stored
)
