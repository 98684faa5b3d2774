package lambdax

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Letters store dead letters. They are safe for concurrent use.
type Letters interface {
	// Put returns nil once the letter is stored durably. The same message may be put twice, because it is received again if its
	// end could not be recorded.
	Put(ctx context.Context, l *Letter) error
}

// A Letter is a message that will not be handled, and the reason.
type Letter struct {
	*Message
	Reason   Reason
	Detail   string // readable, without secrets
	Attempts int    // number of handlings; 0 if they are not counted
}

// A Reason is the reason for a dead letter.
type Reason string

const (
	Rejected Reason = "rejected" // by its outcome class: handling it again cannot help
	Spent    Reason = "spent"    // the maximum number of handlings is reached
	Poison   Reason = "poison"   // the function ended before the message did, MaxStalls times
)

// Delays postpone messages. They are safe for concurrent use.
type Delays interface {
	// Delay makes SQS deliver the message again after d at the earliest, instead of after its visibility timeout.
	Delay(ctx context.Context, m *Message, d time.Duration) error
}

// Permanent wraps an error that handling the message again cannot fix: the message becomes a dead letter immediately.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Outcome returns the outcome of a caller's mistake.
func (p *permanent) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: "permanent"}
}

var _ outcome.Classifier = (*permanent)(nil)
