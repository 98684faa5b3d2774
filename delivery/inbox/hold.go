package inbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// A message is a received message.
type message struct {
	types.Message
	sent  int64         // in milliseconds; 0 if SQS does not report it
	since time.Time     // when it was received
	again time.Duration // after being given back, it becomes visible after this time
}

// hands contains the messages in hand, which stay invisible to other receivers.
type hands struct {
	done chan *message // messages to be deleted
	back chan *message // messages to be given back

	mu  sync.Mutex
	all map[*message]struct{}
}

func (h *hands) take(of types.Message) *message {
	m := &message{Message: of, since: time.Now()}
	m.sent, _ = strconv.ParseInt(of.Attributes[string(types.MessageSystemAttributeNameSentTimestamp)], 10, 64)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.all[m] = struct{}{}
	return m
}

func (h *hands) drop(all ...*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, m := range all {
		delete(h.all, m)
	}
}

func (h *hands) has(m *message) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, is := h.all[m]
	return is
}

// before returns how many messages in hand were sent before m. Messages are retried in this order. With random order,
// some could wait behind a limit for days and become dead letters.
func (h *hands) before(m *message) (n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for other := range h.all {
		if other.sent < m.sent {
			n++
		}
	}
	return min(n, most)
}

// list returns the messages whose visibility timeout SQS still extends.
func (h *hands) list() (all []*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.all {
		if time.Since(m.since) < mostHeld+seldom { // it is submitted once more at that time
			all = append(all, m)
		}
	}
	return all
}

// holds extends the visibility timeout of the messages in hand, and gives back the messages on h.back. One goroutine
// does both, so that it does not hide a message that was given back.
func (b *Inbox) holds(ctx context.Context, h *hands) {
	tick := time.NewTicker(lengthen)
	defer tick.Stop()
	for {
		select {
		case m, more := <-h.back:
			if !more {
				return
			}
			all := batchOf(m, h.back, gathers)
			h.drop(all...)
			b.hide(ctx, all, func(m *message) time.Duration { return m.again }, func(*message) bool { return true })
		case <-tick.C:
			var asks sync.WaitGroup
			for some := range slices.Chunk(h.list(), inBatch) {
				asks.Go(func() { b.hide(ctx, some, func(*message) time.Duration { return unseen }, h.has) })
			}
			asks.Wait()
		}
	}
}

// hide sets the visibility timeout of messages. If that fails, they become visible after their present timeout. hide
// reports the failures of messages for which matters returns true.
func (b *Inbox) hide(ctx context.Context, all []*message, long func(*message) time.Duration, matters func(*message) bool) {
	in := &sqs.ChangeMessageVisibilityBatchInput{QueueUrl: &b.URL}
	for i, m := range all {
		in.Entries = append(in.Entries, types.ChangeMessageVisibilityBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle, VisibilityTimeout: int32(long(m) / time.Second)})
	}
	ask, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	out, err := b.Queue.ChangeMessageVisibilityBatch(ask, in)
	if err == nil {
		err = failed(out.Failed, func(i int) bool { return matters(all[i]) })
	}
	if err != nil {
		b.Failed(fmt.Errorf("hold messages of %s: %w", b.URL, err))
	}
}

// deletes deletes messages in batches. A message that could not be deleted is received again. Then its request is found
// to be stored.
func (b *Inbox) deletes(ctx context.Context, h *hands) {
	for m := range h.done {
		in := &sqs.DeleteMessageBatchInput{QueueUrl: &b.URL}
		for i, m := range batchOf(m, h.done, 0) {
			in.Entries = append(in.Entries, types.DeleteMessageBatchRequestEntry{Id: aws.String(strconv.Itoa(i)), ReceiptHandle: m.ReceiptHandle})
		}
		ask, cancel := context.WithTimeout(ctx, asking)
		out, err := b.Queue.DeleteMessageBatch(ask, in)
		cancel()
		if err == nil {
			err = failed(out.Failed, func(int) bool { return true })
		}
		if err != nil {
			b.Failed(fmt.Errorf("delete messages of %s: %w", b.URL, err))
		}
	}
}

// batchOf returns a message together with messages that arrive within a duration, up to the maximum of a request to SQS.
func batchOf(first *message, others <-chan *message, within time.Duration) []*message {
	all := []*message{first}
	var late <-chan time.Time
	if within > 0 {
		late = time.After(within)
	}
	for len(all) < inBatch {
		if within == 0 && len(others) == 0 {
			return all
		}
		select {
		case m, more := <-others:
			if !more {
				return all
			}
			all = append(all, m)
		case <-late:
			return all
		}
	}
	return all
}

// failed returns the error of the first failure for which matters returns true.
func failed(all []types.BatchResultErrorEntry, matters func(i int) bool) error {
	for _, f := range all {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err != nil || matters(i) {
			return errors.New(cmp.Or(aws.ToString(f.Message), aws.ToString(f.Code)))
		}
	}
	return nil
}
