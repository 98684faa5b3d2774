// Package inbox receives requests from an SQS queue, one per message, and submits each as a delivery. The ID of the
// message prevents duplicates. SQS moves messages that cannot be submitted to the queue's dead letter queue. Moves
// moves them back.
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

// A Queue contains the methods of an SQS client that an Inbox needs. *sqs.Client implements it. A Queue must be safe
// for concurrent use.
type Queue interface {
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)

	// For Init and Check.
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Queue = (*sqs.Client)(nil)

// An Inbox submits the requests of a queue. Run does the work. Its functions must be safe for concurrent use, and its
// fields must not change while Run runs.
type Inbox struct {
	Queue Queue
	URL   string // of the queue; the URL of a FIFO queue ends with .fifo

	// Hand stores a request and returns the result. It must return when the request's context ends. If a message is
	// received again, Hand is called again with the same Idempotency-Key. Calls are concurrent.
	Hand func(*http.Request) Answer

	Unread func(id string, err error) // called for a message that is not a valid request; it must not block
	Failed func(error)                // called when a request to SQS failed, which is retried; if Hand panicked, the error is a *PanicError
}

// An Answer is the result of a request.
type Answer struct {
	Status int           // an HTTP status: 2xx means stored; 429, 5xx and below 200 mean that it may be stored later; any other means never
	Wait   time.Duration // how long to wait before the next try; 0 means unknown
}

// A PanicError means that Hand panicked for a message. SQS delivers the message again later.
type PanicError struct {
	ID    string // of the message
	Value any
	Stack []byte
}

func (e *PanicError) Error() string {
	return fmt.Sprintf("submit message %s: panic: %v", e.ID, e.Value)
}

// Limits of messages and times.
const (
	inBatch = 10  // the maximum number of messages in a request to SQS
	most    = 100 // maximum number of messages in hand

	unseen   = 120 * time.Second      // visibility timeout of a message, which is extended while it is in hand
	lengthen = 45 * time.Second       // interval of these extensions
	mostHeld = 11 * time.Hour         // SQS takes a message back 12 hours after it was received
	mostLeft = 55 * time.Minute       // the longest visibility timeout that is still possible then
	seldom   = 5 * time.Minute        // the longest interval between tries of a message that must wait, because its limit may have been raised
	gathers  = 100 * time.Millisecond // how long messages to be given back are collected
	later    = 30 * time.Second       // when a refused message becomes visible again: its route may exist by then
	asking   = 5 * time.Second        // timeout of a request to SQS
	ending   = 5 * time.Second        // time for all requests to SQS after ctx ends
)

// Run receives messages until ctx ends. Then it gives back the messages in hand. If SQS does not respond within a few
// seconds, Run returns anyway. The messages become visible again after their timeout.
func (b *Inbox) Run(ctx context.Context) {
	asks, cut := outlasts(ctx, ending)
	defer cut()
	h := &hands{done: make(chan *message, most), back: make(chan *message, most), all: make(map[*message]struct{})}
	var takes, ends sync.WaitGroup
	ends.Go(func() { b.deletes(asks, h) })
	ends.Go(func() { b.holds(asks, h) })
	room := make(chan struct{}, most)
	batch := b.batch()
	for free := 0; enter(ctx, room, batch-free); { // do not receive messages that would have to wait here
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

// outlasts returns a context that ends some time after ctx, or when it is canceled.
func outlasts(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	longer, cut := context.WithCancel(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		pause(longer, by)
		cut()
	})
	return longer, cut
}

// enter takes n slots of a channel unless ctx ends.
func enter(ctx context.Context, room chan<- struct{}, n int) bool {
	for range n {
		select {
		case room <- struct{}{}:
		case <-ctx.Done():
		}
	}
	return ctx.Err() == nil
}

// batch returns the number of messages to receive at a time. For a FIFO queue it is one. SQS could return several of a
// group and count a receive for each. If the first were refused, the rest would have to be given back too, and would
// become dead letters too early. While one message of a group is in hand, SQS returns no other of that group.
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

func (b *Inbox) fifo() bool { return strings.HasSuffix(b.URL, ".fifo") }

// groupOf returns the group of a message. It is empty for a standard queue, in which groups do not imply an order.
func (b *Inbox) groupOf(m *types.Message) string {
	if !b.fifo() {
		return ""
	}
	return m.Attributes[string(types.MessageSystemAttributeNameMessageGroupId)]
}

// take submits a message, and has it deleted or given back.
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

// hands submits a message. While the request cannot be stored, the message stays in hand, however long that takes. SQS
// counts each receive and moves a message to the dead letter queue after a number of them. If taken is false, again is
// when the message becomes visible.
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
			return 0, true // the request was stored under the message's own ID; its content would be different now
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

// safely calls Hand and recovers from a panic. Otherwise the process would end, and the message would end the next
// process too.
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
