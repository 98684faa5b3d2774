package lambdax

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// Letters keep dead letters. They are safe for concurrent use.
type Letters interface {
	// Put has stored the letter durably when it returns nil. The same message may be put twice: when its end could
	// not be written down, it comes again.
	Put(ctx context.Context, l *Letter) error
}

// A Letter is a message that will not be handled, and why.
type Letter struct {
	*Message
	Reason   Reason
	Detail   string // in words, without secrets
	Attempts int    // how often it was handled; 0 if nobody counts
}

// A Reason is why a message is a dead letter.
type Reason string

const (
	Rejected Reason = "rejected" // its class: handling it again cannot help
	Spent    Reason = "spent"    // it was handled as often as it may be
	Poison   Reason = "poison"   // the function ended before the message did, MaxStalls times
)

// Delays put messages off.
type Delays interface {
	// Delay has a message come again after d at the earliest, instead of when its visibility timeout ends.
	Delay(ctx context.Context, m *Message, d time.Duration) error
}

// Permanent is err as what cannot be mended by handling the message again: it becomes a dead letter at once.
// Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// Outcome is that of a mistake of the caller.
func (p *permanent) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: "permanent"}
}

var _ outcome.Classifier = (*permanent)(nil)
