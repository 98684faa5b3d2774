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
	flows   [][]int // places of messages that are handled one after the other; a message that the batch has twice has one
	first   []int   // by place: the first place of the same message

	began  time.Time
	stop   time.Time // none begins that would not be over by then, and what is being handled ends
	answer time.Time // the batch is answered, whatever is still being handled
	end    time.Time // the function's
	work   context.Context
	store  context.Context // for what has to be written down after a handling; it ends when the batch is answered
	cancel context.CancelFunc

	mu   sync.Mutex
	next int    // flow to be handled
	done []bool // by place: the message need not come again
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

// times works out by when what has to be over. What is handled has to end while there is time to write that down;
// half the margin is for that, and half for the answer.
func (b *batch) times(ctx context.Context) {
	b.end = b.began.Add(b.s.o.Within)
	if at, ok := ctx.Deadline(); ok && at.Before(b.end) {
		b.end = at
	}
	margin := max(0, min(b.s.o.Margin, b.end.Sub(b.began)/2))
	b.stop, b.answer = b.end.Add(-margin), b.end.Add(-margin/2)
}

// order finds what must be handled one after the other.
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

// run returns when all is handled, or it is time to answer. What does not heed its context goes on behind the
// answer's back; its message comes again.
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

// handleAll handles messages in order, up to the first that has to come again.
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

// response names what has to come again, each message once. One that has no ID cannot be named; the name "" has the
// whole batch come again.
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
