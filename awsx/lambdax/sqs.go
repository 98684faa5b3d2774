package lambdax

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"

	"github.com/seed1158cd35/weir"
)

// A Message is one message of a batch.
type Message struct {
	events.SQSMessage

	// Attempt is the number of handlings of the message, including this one; 0 without Records. Handlings that a breaker, a pause
	// or a limit prevented do not count.
	Attempt int

	// Unknown means that an earlier handling has an unknown result: its effects may already exist. For an upstream with
	// idempotency keys, use the MessageId as the key.
	Unknown bool
}

// SQSOptions configure how batches are handled. Handle is required.
type SQSOptions struct {
	// Handle handles a message. Its context ends before the function does. After an error the message is received again, except
	// that an error from Permanent, or with class rejected, makes it a dead letter immediately.
	Handle func(ctx context.Context, m *Message) error

	// Upstream is the upstream whose policy applies to each message, as one attempt of a call. nil means that Handle applies
	// policies itself, or none.
	Upstream *weir.Upstream

	// Call describes a message for the policy; nil means the zero Call with the MessageId as its ID.
	Call func(m *events.SQSMessage) weir.Call

	// Records remember handled messages, so that a duplicate is not handled again; nil means no memory.
	Records Records
	Keep    time.Duration // how long Records remember; 0 means 14 days, the maximum retention of SQS

	// Letters receives messages that cannot be handled. nil means that they are received again until the queue's redrive policy
	// applies.
	Letters  Letters
	Attempts int // maximum number of handlings before a message becomes a dead letter; 0 leaves that to the queue. Requires Records and Letters

	// Delays postpones messages that were refused, or whose upstream requested a delay; nil means that they are received again
	// after their visibility timeout.
	Delays Delays

	Parallel int           // messages handled concurrently, one at a time per message group; 0 means 10
	Within   time.Duration // maximum duration of a batch; 0 means 5m. At most the queue's visibility timeout
	Margin   time.Duration // time between the response and the function's deadline; 0 means 1s

	Log   *slog.Logger            // nil means no log
	Ended func(m *Message, e End) // receives the result of each message of a batch, once; may be nil
}

// An SQS handles batches of messages. Create one with NewSQS. It is safe for concurrent use. After a batch, it only keeps the
// durations of messages.
type SQS struct {
	o    SQSOptions
	took lately
}

// Defaults of SQSOptions.
const (
	defaultParallel = 10
	defaultKeep     = 14 * 24 * time.Hour
	defaultMargin   = time.Second
)

// NewSQS returns an SQS, or all errors in the options.
func NewSQS(o SQSOptions) (*SQS, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("lambdax: %w", err)
	}
	o.Parallel, o.Keep = cmp.Or(o.Parallel, defaultParallel), cmp.Or(o.Keep, defaultKeep)
	o.Within, o.Margin = cmp.Or(o.Within, Processor.Limit()), cmp.Or(o.Margin, defaultMargin)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &SQS{o: o}, nil
}

func (o *SQSOptions) validate() error {
	var errs []error
	if o.Handle == nil {
		errs = append(errs, errors.New("option Handle: is missing; it handles each message"))
	}
	if o.Attempts > 0 && (o.Records == nil || o.Letters == nil) {
		errs = append(errs, errors.New("option Attempts: needs Records, which count attempts, and Letters, which receive the dead letters"))
	}
	for name, n := range map[string]int64{
		"Attempts": int64(o.Attempts), "Parallel": int64(o.Parallel),
		"Keep": int64(o.Keep), "Within": int64(o.Within), "Margin": int64(o.Margin),
	} {
		if n < 0 {
			errs = append(errs, fmt.Errorf("option %s: must not be negative", name))
		}
	}
	if o.Margin > 0 && o.Margin >= cmp.Or(o.Within, Processor.Limit()) {
		errs = append(errs, fmt.Errorf("option Margin %v: leaves no time of Within %v", o.Margin, cmp.Or(o.Within, Processor.Limit())))
	}
	return errors.Join(errs...)
}

// Batch handles a batch and returns the messages that must be received again: unhandled messages and, in a FIFO queue, all later
// messages of their groups. It never returns an error, which would return the whole batch to the queue. It returns before the
// function's deadline, whatever Handle does.
func (s *SQS) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	b := newBatch(ctx, s, e.Records)
	defer b.cancel()
	b.run()
	return b.response(), nil
}

// fifo reports whether a message came from a FIFO queue. Other messages may have groups as well, which do not define an order.
func fifo(m *events.SQSMessage) bool { return strings.HasSuffix(m.EventSourceARN, ".fifo") }

// groupOf returns the message group of a message, "" if order does not matter.
func groupOf(m *events.SQSMessage) string {
	if !fifo(m) {
		return ""
	}
	return m.EventSourceARN + "\n" + m.Attributes["MessageGroupId"]
}
