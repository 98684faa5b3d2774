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

	// Attempt counts how often the message was handled, this time included; 0 without Records. Handlings that a
	// breaker, a pause or a limit kept from beginning do not count.
	Attempt int

	// Unknown says that it was handled before, and nobody knows how that ended: what it does may be done already.
	// An upstream that takes idempotency keys is best given the MessageId.
	Unknown bool
}

// SQSOptions say how batches of messages are handled. Handle is needed.
type SQSOptions struct {
	// Handle handles a message. Its context ends in time before the function does. An error makes the message come
	// again; one that Permanent was given, or whose class is rejected, makes it a dead letter at once.
	Handle func(ctx context.Context, m *Message) error

	// Upstream is whose policy each message is handled under: as an attempt of one call. nil means that Handle
	// itself calls under policies, or under none.
	Upstream *weir.Upstream

	// Call is what the policy needs to know of a message; nil means the zero Call, with the MessageId as its ID.
	Call func(m *events.SQSMessage) weir.Call

	// Records remember what was handled, so that nothing is handled again that comes twice; nil means that nothing
	// is remembered.
	Records Records
	Keep    time.Duration // for how long they do; 0 means 14 days, which is as long as SQS keeps a message

	// Letters takes messages that cannot be handled. nil means that they come again, until the queue's own redrive
	// policy has enough of them.
	Letters  Letters
	Attempts int // how often a message is handled before it is a dead letter; 0 means until the queue has enough of it. Needs Records and Letters

	// Delays puts a message off that was refused, or whose upstream said when to come back; nil means that it
	// comes again when its visibility timeout ends.
	Delays Delays

	Parallel int           // how many messages are handled at once, those of a message group one after the other; 0 means 10
	Within   time.Duration // how long a batch may take; 0 means 5m. Not longer than the queue's visibility timeout
	Margin   time.Duration // how long before the function's end it answers; 0 means 1s

	Log   *slog.Logger            // nil means no log
	Ended func(m *Message, e End) // hears what became of each message that the batch held, once; nil means unheard
}

// An SQS handles batches of messages; NewSQS makes one. It is safe for concurrent use, and keeps nothing of a batch
// when the batch is over but how long messages took.
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

// NewSQS reports every mistake in the options at once.
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

// Batch handles a batch and says which of its messages are to come again: those that were not handled, and of a FIFO
// queue all of a message group from the first of those on. It never returns an error, which would have all of them
// come again, and returns before the function's deadline whatever Handle does.
func (s *SQS) Batch(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
	b := newBatch(ctx, s, e.Records)
	defer b.cancel()
	b.run()
	return b.response(), nil
}

// fifo reports whether a message came from a FIFO queue. Messages of others may have groups, too, which say nothing
// of their order.
func fifo(m *events.SQSMessage) bool { return strings.HasSuffix(m.EventSourceARN, ".fifo") }

// groupOf is the message group of a message, "" if order does not matter.
func groupOf(m *events.SQSMessage) string {
	if !fifo(m) {
		return ""
	}
	return m.EventSourceARN + "\n" + m.Attributes["MessageGroupId"]
}
