// Package inbox takes requests out of a queue of SQS, each of whose messages is one, and has each handed in as a delivery: once, by the
// id of its message. A message that cannot be taken goes to the queue's own dead letter queue, out of which Moves move them again.
package inbox

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A Queue is what an Inbox needs of a client of SQS. *sqs.Client is one.
type Queue interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)

	// For Init and Check.
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Queue = (*sqs.Client)(nil)

// An Inbox hands in the requests of a queue. Run does the work.
type Inbox struct {
	Queue Queue
	URL   string // of the queue; that of a FIFO queue ends with .fifo

	// Hand has a request stored, and says how that went; it ends when the request's context does. It is called for the same message
	// again when the message comes again: the request has an Idempotency-Key then that it had before. It is called by several at once.
	Hand func(*http.Request) Answer

	Unread func(id string, err error) // hears of a message that is no request; it must not block
	Failed func(error)                // hears of what SQS did not do, and is tried again; of a Hand that panics it is a *PanicError
}

// An Answer is what became of a request.
type Answer struct {
	Status int           // as over HTTP: of 2xx alone it is stored; of 429, from 500 on and under 200 it may be later; of others never
	Wait   time.Duration // until it is worth trying again; 0 if nobody knows
}

// A PanicError says that Hand panicked over a message, which comes again later.
type PanicError struct {
	ID    string // of the message
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("submit message %s: panic: %v", e.ID, e.Value)
}

// Bounds of what is received, and for how long.
const (
	inBatch = 10  // SQS gives, deletes, and holds as many at once
	most    = 100 // messages that are in hand at a time

	unseen   = 120 * time.Second      // others do not see a message for so long, unless that is lengthened
	lengthen = 45 * time.Second       // how often it is
	mostHeld = 11 * time.Hour         // SQS takes a message back 12 hours after it was received
	mostLeft = 55 * time.Minute       // for which it can be hidden still when it is given back then
	seldom   = 5 * time.Minute        // a message that has to wait for longer is tried so often: the limit may have been raised
	gathers  = 100 * time.Millisecond // for which what is given back waits for more of it
	later    = 30 * time.Second       // until a message that was refused comes again: its route may be there by then
	asking   = 5 * time.Second        // for one ask of SQS
	ending   = 5 * time.Second        // for all that is asked once Run is to end
)

// Run receives messages until ctx ends. What is in hand then is given back at once; a queue that does not answer has what it was to do
// undone after a few seconds, and then the messages come again by themselves.
func (b *Inbox) Run(ctx context.Context) {
	asks, cut := outlasts(ctx, ending)
	defer cut()
	h := &hands{done: make(chan *message, most), back: make(chan *message, most), all: make(map[*message]struct{})}
	var takes, ends sync.WaitGroup
	ends.Go(func() { b.deletes(asks, h) })
	ends.Go(func() { b.holds(asks, h) })
	room := make(chan struct{}, most)
	batch := b.batch()
	for free := 0; enter(ctx, room, batch-free); { // nothing is received that would have to wait here
		got, err := b.receive(ctx, batch)
		if err != nil && ctx.Err() == nil {
			b.Failed(fmt.Errorf("receive requests from %s: %w", b.URL, err))
			pause(ctx, time.Second)
		}
		free = batch - len(got)
		for _, of := range got {
			m := h.take(of)
			takes.Go(func() {
				b.take(ctx, m, h)
				<-room
			})
		}
	}
	takes.Wait()
	close(h.done)
	close(h.back)
	ends.Wait()
}

// outlasts is a context that ends some time after another one, or when it is cut.
func outlasts(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cut := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		pause(longer, by)
		cut()
	})
	return longer, cut
}

// enter takes places in a room, unless ctx ends.
func enter(ctx context.Context, room chan<- struct{}, n int) bool {
	for range n {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// batch is how many are received at once. Of a FIFO queue it is one: SQS would give several of a group, count a receive of each, and
// those behind one that is not taken would have to be given back with it, and die before their time. While one of a group is in hand
// SQS gives no other of it.
func (b *Inbox) batch() int {
	if b.fifo() {
		return 1
	}
	return inBatch
}

func (b *Inbox) receive(ctx context.Context, n int) ([]types.Message, error) {
	out, err := b.Queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.URL, MaxNumberOfMessages: int32(n), WaitTimeSeconds: 20,
		VisibilityTimeout: int32(unseen / time.Second), MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId, types.MessageSystemAttributeNameSentTimestamp}})
	if err != nil {
		return nil, err
	}
	return out.Messages, nil
}

// fifo reports whether the queue keeps the order of its groups.
func (b *Inbox) fifo() bool { return strings.HasSuffix(b.URL, ".fifo") }

// groupOf is the group of a message, which is none in a standard queue: there it has nothing to do with order.
func (b *Inbox) groupOf(m *types.Message) string {
	if !b.fifo() {
		return ""
	}
	return m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
}

// take hands a message in, and has it deleted or given back.
func (b *Inbox) take(ctx context.Context, m *message, h *hands) {
	again, taken := b.hands(ctx, m, h)
	if taken {
		h.drop(m)
		h.done <- m
		return
	}
	m.again = again
	h.back <- m
}

// hands hands a message in. It stays in hand while that cannot be done now, however long the wait is: each time that it is received
// counts, and after a number of them SQS takes it for one that cannot be read. If it was not taken, it is to come again after a time.
func (b *Inbox) hands(ctx context.Context, m *message, h *hands) (again time.Duration, taken bool) {
	for pace := time.Second; ctx.Err() == nil; pace = min(2*pace, later) {
		r, err := b.request(ctx, &m.Message)
		if err != nil {
			b.Unread(aws.ToString(m.MessageId), err)
			return later, false
		}
		own := r.Header.Get(keyHeader) == aws.ToString(m.MessageId)
		a, err := b.safely(r, m)
		if err != nil {
			b.Failed(err)
			return later, false
		}
		left := mostHeld - time.Since(m.since)
		switch {
		case a.Status >= 200 && a.Status < 300, own && a.Status == http.StatusUnprocessableEntity:
			return 0, true // under the message's own id nothing but the message was stored, though it would be stored otherwise now
		case a.Status >= 300 && a.Status < 500 && a.Status != http.StatusTooManyRequests:
			return later, false
		case left <= 0:
			return min(a.Wait, mostLeft), false
		}
		wait := min(max(a.Wait, pace), seldom)
		pause(ctx, min(wait+wait*time.Duration(h.before(m))/most, left))
	}
	return 0, false
}

// safely is Hand that does not end the process by a panic: the message would come again, and end the next one.
func (b *Inbox) safely(r *http.Request, m *message) (a Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{aws.ToString(m.MessageId), v, debug.Stack()}
		}
	}()
	return b.Hand(r), nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
