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

// A message is one that was received.
type message struct {
	types.Message
	sent  int64         // in milliseconds; 0 if SQS does not say
	since time.Time     // it was received
	again time.Duration // after which it is to come again; once it is given back
}

// hands are the messages in hand: none of them is seen by others meanwhile.
type hands struct {
	done chan *message // are to be deleted
	back chan *message // are to be given back

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

// before is how many messages in hand were sent before one. By that they are tried one after the other, once a limit may let one
// through: with luck alone some would wait for days, and die of it.
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

// list is all that SQS lets be held for longer.
func (h *hands) list() (all []*message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for m := range h.all {
		if time.Since(m.since) < mostHeld+seldom { // it is handed in once more then
			all = append(all, m)
		}
	}
	return all
}

// holds keeps what is in hand from being seen by others, whatever is done with it, and gives back what is to be. One goroutine does
// both, so that nothing is hidden that was given back.
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

// hide has messages come again after a time. If that fails they come again by themselves; it is told of those that still matter.
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

// deletes deletes what was taken, together. A message that is not deleted comes again, and is found to be stored.
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

// batchOf is a message with those that come within a time, as many as SQS takes at once.
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

// failed is what was wrong with the first of a batch's failures that matters.
func failed(all []types.BatchResultErrorEntry, matters func(i int) bool) error {
	for _, f := range all {
		if i, err := strconv.Atoi(aws.ToString(f.Id)); err != nil || matters(i) {
			return errors.New(cmp.Or(aws.ToString(f.Message), aws.ToString(f.Code)))
		}
	}
	return nil
}
