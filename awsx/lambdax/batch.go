package lambdax

import (
	"context"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/events"
)

// A batch is the messages of one invocation.
type batch struct {
	s       *SQS
	records []events.SQSMessage
	flows   [][]int // indexes of messages that are handled one after the other; a duplicate in the batch has one index
	first   []int   // by index: the first index of the same message

	began  time.Time
	stop   time.Time // no handling begins that would not end by then, and running ones are canceled
	answer time.Time // the response is returned then, even if handlings are still running
	end    time.Time // deadline of the function
	work   context.Context
	store  context.Context // for records after a handling; ends when the response is returned
	cancel context.CancelFunc

	mu   sync.Mutex
	next int    // next flow to handle
	done []bool // by index: the message need not be received again
}

func newBatch(ctx context.Context, s *SQS, records []events.SQSMessage) *batch {
	b := &batch{s: s, records: records, began: time.Now(), done: make([]bool, len(records))}
	b.times(ctx)
	work, endWork := context.WithDeadline(ctx, b.stop)
	store, endStore := context.WithDeadline(context.WithoutCancel(ctx), b.answer)
	b.work, b.store = work, store
	b.cancel = func() { endWork(); endStore() }
	b.order()
	return b
}

// times computes the deadlines. A handling must end early enough to record its result. Half of the margin is for that, and half
// for the response.
func (b *batch) times(ctx context.Context) {
	b.end = b.began.Add(b.s.o.Within)
	if at, ok := ctx.Deadline(); ok && at.Before(b.end) {
		b.end = at
	}
	margin := max(0, min(b.s.o.Margin, b.end.Sub(b.began)/2))
	b.stop, b.answer = b.end.Add(-margin), b.end.Add(-margin/2)
}

// order determines which messages must be handled one after the other.
func (b *batch) order() {
	b.first = make([]int, len(b.records))
	seen := make(map[string]int, len(b.records))
	groups := make(map[string]int)
	for i := range b.records {
		m := &b.records[i]
		key := recordID(m)
		b.first[i] = i
		if at, twice := seen[key]; twice && m.MessageId != "" {
			b.first[i] = at
			continue
		}
		seen[key] = i
		group := groupOf(m)
		if at, ok := groups[group]; ok && group != "" {
			b.flows[at] = append(b.flows[at], i)
			continue
		}
		groups[group] = len(b.flows)
		b.flows = append(b.flows, []int{i})
	}
}

// run returns when all messages are handled, or when it is time to respond. A handling that ignores its context continues after
// the response. Its message will be received again.
func (b *batch) run() {
	var workers sync.WaitGroup
	for range min(b.s.o.Parallel, len(b.flows)) {
		workers.Go(b.worker)
	}
	over := make(chan struct{})
	go func() { workers.Wait(); close(over) }()
	select {
	case <-over:
	case <-b.store.Done():
		b.s.o.Log.Error("messages are still being handled after the function's time: Handle ignores its context")
	}
}

func (b *batch) worker() {
	for {
		b.mu.Lock()
		i := b.next
		b.next++
		b.mu.Unlock()
		if i >= len(b.flows) {
			return
		}
		b.handleAll(b.flows[i])
	}
}

// handleAll handles messages in order, up to the first that must be received again.
func (b *batch) handleAll(flow []int) {
	for n, i := range flow {
		if e := b.handle(&b.records[i]); e.Again() {
			for _, rest := range flow[n+1:] {
				b.ended(&Message{SQSMessage: b.records[rest]}, End{Why: Behind})
			}
			return
		}
		b.mu.Lock()
		b.done[i] = true
		b.mu.Unlock()
	}
}

// response names the messages that must be received again, each once. A message without an ID cannot be named. The name ""
// returns the whole batch to the queue.
func (b *batch) response() events.SQSEventResponse {
	b.mu.Lock()
	defer b.mu.Unlock()
	out := events.SQSEventResponse{BatchItemFailures: []events.SQSBatchItemFailure{}}
	for i, at := range b.first {
		if i == at && !b.done[i] {
			out.BatchItemFailures = append(out.BatchItemFailures, events.SQSBatchItemFailure{ItemIdentifier: b.records[i].MessageId})
		}
	}
	return out
}
