// Package inbox takes requests out of a queue of SQS, each of whose messages is one, and has each handed in as a delivery: once, by the
// id of its message. A message that cannot be taken goes to the queue's own dead letter queue, out of which Moves move them again.
package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
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
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)

	// For Init and Check.
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Queue = (*sqs.Client)(nil)

// An Inbox hands in the requests of a queue. Run does the work.
type Inbox struct {
	Queue Queue
	URL   string // of the queue; that of a FIFO queue ends with .fifo

	// Hand has a request stored, and says how that went. It is called for the same message again when the message comes again:
	// the request has an Idempotency-Key then that it had before. It is called by several at once.
	Hand func(*http.Request) Answer

	Unread func(id string, err error) // hears of a message that is no request; it must not block
	Failed func(error)                // hears of what SQS did not do; it is tried again
}

// An Answer is what became of a request.
type Answer struct {
	Status int           // as over HTTP: below 300 it is stored, 429 and from 500 on it may be later, others never will be
	Wait   time.Duration // until it is worth trying again; 0 if nobody knows
}

// Bounds of what is received, and for how long.
const (
	inBatch = 10  // SQS gives, and deletes, as many at once
	most    = 100 // messages that are in hand at a time

	unseen   = 120 * time.Second // others do not see a message for so long, unless that is lengthened
	lengthen = 45 * time.Second  // after which it is
	mostHeld = 11 * time.Hour    // SQS takes a message back after 12
	longest  = time.Minute       // a message whose request has to wait for longer is given back until then
	later    = 30 * time.Second  // until a message that was refused comes again: its route may be there by then
	asking   = 5 * time.Second   // for one ask of SQS
)

// Run receives messages until ctx ends. What is in hand then is given back at once.
func (b *Inbox) Run(ctx context.Context) {
	var all sync.WaitGroup
	room := make(chan struct{}, most)
	done := make(chan string, most)
	var deletes sync.WaitGroup
	deletes.Go(func() { b.deletes(done) })
	for free := 0; enter(ctx, room, inBatch-free); { // nothing is received that would have to wait here, unheld
		got, err := b.receive(ctx)
		if err != nil && ctx.Err() == nil {
			b.Failed(fmt.Errorf("receive requests from %s: %w", b.URL, err))
			pause(ctx, time.Second)
		}
		free = inBatch - len(got)
		for _, group := range b.groups(got) {
			all.Go(func() {
				b.inOrder(ctx, group, done)
				for range group {
					<-room
				}
			})
		}
	}
	all.Wait()
	close(done)
	deletes.Wait()
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

func (b *Inbox) receive(ctx context.Context) ([]types.Message, error) {
	out, err := b.Queue.ReceiveMessage(ctx, &sqs.ReceiveMessageInput{QueueUrl: &b.URL, MaxNumberOfMessages: inBatch, WaitTimeSeconds: 20,
		VisibilityTimeout: int32(unseen / time.Second), MessageSystemAttributeNames: []types.MessageSystemAttributeName{types.MessageSystemAttributeNameMessageGroupId}})
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

// groups are messages that are to be handed in one after the other.
func (b *Inbox) groups(all []types.Message) (groups [][]types.Message) {
	at := make(map[string]int)
	for _, m := range all {
		name := b.groupOf(&m)
		i, known := at[name]
		if name == "" || !known {
			i, at[name] = len(groups), len(groups)
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], m)
	}
	return groups
}

// inOrder hands in messages one after the other. From the first that is not taken on all are given back: a later one would overtake it.
func (b *Inbox) inOrder(ctx context.Context, group []types.Message, done chan<- string) {
	for i := range group {
		if again, taken := b.take(ctx, &group[i]); !taken {
			b.giveBack(&group[i], again)
			for j := range group[i+1:] {
				b.giveBack(&group[i+1+j], 0)
			}
			return
		}
		done <- aws.ToString(group[i].ReceiptHandle)
	}
}

// take hands a message in, and holds it while that cannot be done now: each time that it is received counts, and after a number of them
// SQS takes it for one that cannot be read. If it was not taken, it is to come again after a time.
func (b *Inbox) take(ctx context.Context, m *types.Message) (again time.Duration, taken bool) {
	begun := time.Now()
	held := begun
	for pace := time.Second; ctx.Err() == nil; pace = min(2*pace, later) {
		r, err := b.request(ctx, m)
		if err != nil {
			b.Unread(aws.ToString(m.MessageId), err)
			return later, false
		}
		own := r.Header.Get(keyHeader) == aws.ToString(m.MessageId)
		a := b.Hand(r)
		switch {
		case a.Status < 300, own && a.Status == http.StatusUnprocessableEntity:
			return 0, true // under the message's own id nothing but the message was stored, though it would be stored otherwise now
		case a.Status < 500 && a.Status != http.StatusTooManyRequests:
			return later, false
		case a.Wait > longest, time.Since(begun) > mostHeld:
			return min(a.Wait, mostHeld), false
		}
		if !pause(ctx, max(a.Wait, pace)) {
			break
		}
		if time.Since(held) > lengthen {
			held = time.Now()
			b.unsee(ctx, m, unseen)
		}
	}
	return 0, false
}

// giveBack has a message come again after a time.
func (b *Inbox) giveBack(m *types.Message, after time.Duration) {
	b.unsee(context.Background(), m, after)
}

func (b *Inbox) unsee(ctx context.Context, m *types.Message, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	_, err := b.Queue.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &b.URL, ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: int32(long / time.Second)})
	if err != nil && ctx.Err() == nil { // it comes again by itself
		b.Failed(fmt.Errorf("hold a message of %s: %w", b.URL, err))
	}
}

// deletes deletes what was taken, together. A message that is not deleted comes again, and is found to be stored.
func (b *Inbox) deletes(done <-chan string) {
	for receipt := range done {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &b.URL}
		for more := true; more; {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(fmt.Sprint(len(in.Entries))), ReceiptHandle: aws.String(receipt)})
			if more = len(in.Entries) < inBatch; more {
				select {
				case receipt, more = <-done:
				default:
					more = false
				}
			}
		}
		ctx, cancel := context.WithTimeout(context.Background(), asking)
		out, err := b.Queue.DeleteMessageBatch(ctx, in)
		cancel()
		if err == nil && len(out.Failed) > 0 {
			err = errors.New(cmp.Or(aws.ToString(out.Failed[0].Message), aws.ToString(out.Failed[0].Code)))
		}
		if err != nil {
			b.Failed(fmt.Errorf("delete messages of %s: %w", b.URL, err))
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
