package inbox_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/seed1158cd35/weir/delivery/inbox"
)

// A played queue behaves as SQS documents, in the virtual time of its bubble. It returns up to ten messages of a group
// together, and none of a group while one of it is invisible. It counts each receive, and moves messages that were
// received too often.
type played struct {
	inbox.Queue
	receives int  // after this number, a message becomes a dead letter
	silent   bool // it responds only to receives

	mu    sync.Mutex
	all   []*letterIn
	dead  []string
	asks  int // number of requests that changed the visibility
	wrong []string
}

type letterIn struct {
	id, body, group string
	sent            int
	received        int
	first, hidden   time.Time // when it was first received; until when it is invisible
}

func (q *played) put(id, group string) {
	q.all = append(q.all, &letterIn{id: id, sent: len(q.all), group: group, body: fmt.Sprintf(letter, id)})
}

func (q *played) ReceiveMessage(ctx context.Context, in *sqs.ReceiveMessageInput, _ ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error) {
	for wait := time.Duration(0); ; wait += time.Second {
		if got := q.give(in); len(got) > 0 || wait > time.Duration(in.WaitTimeSeconds)*time.Second {
			return &sqs.ReceiveMessageOutput{Messages: got}, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Second):
		}
	}
}

func (q *played) give(in *sqs.ReceiveMessageInput) (got []types.Message) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now, locked := time.Now(), make(map[string]bool)
	for _, m := range q.all {
		if m.group != "" && m.hidden.After(now) {
			locked[m.group] = true
		}
	}
	left := q.all[:0:0]
	for _, m := range q.all {
		switch {
		case m.hidden.After(now) || locked[m.group] || len(got) == int(in.MaxNumberOfMessages):
			left = append(left, m)
		case m.received == q.receives:
			q.dead = append(q.dead, m.id)
		default:
			m.received, m.first, m.hidden = m.received+1, now, now.Add(time.Duration(in.VisibilityTimeout)*time.Second)
			got = append(got, types.Message{Body: aws.String(m.body), MessageId: aws.String(m.id), ReceiptHandle: aws.String(m.id + " " + strconv.Itoa(m.received)), Attributes: map[string]string{"MessageGroupId": m.group, "SentTimestamp": strconv.Itoa(m.sent)}})
			left = append(left, m)
		}
	}
	q.all = left
	return got
}

// with returns the index of a message by its receipt.
func (q *played) with(receipt *string) (at int) {
	for i, m := range q.all {
		if m.id+" "+strconv.Itoa(m.received) == aws.ToString(receipt) && m.hidden.After(time.Now()) {
			return i
		}
	}
	return -1
}

func (q *played) silence(ctx context.Context) error {
	q.mu.Lock()
	silent := q.silent
	q.mu.Unlock()
	if silent {
		<-ctx.Done()
	}
	return ctx.Err()
}

func (q *played) DeleteMessageBatch(ctx context.Context, in *sqs.DeleteMessageBatchInput, _ ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error) {
	if err := q.silence(ctx); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, e := range in.Entries {
		if i := q.with(e.ReceiptHandle); i >= 0 {
			q.all = append(q.all[:i:i], q.all[i+1:]...)
		}
	}
	return &sqs.DeleteMessageBatchOutput{}, nil
}

func (q *played) ChangeMessageVisibilityBatch(ctx context.Context, in *sqs.ChangeMessageVisibilityBatchInput, _ ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error) {
	if err := q.silence(ctx); err != nil {
		return nil, err
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.asks++
	var out sqs.ChangeMessageVisibilityBatchOutput
	if len(in.Entries) > 10 {
		q.wrong = append(q.wrong, "more than ten at once")
	}
	for _, e := range in.Entries {
		i := q.with(e.ReceiptHandle)
		if i < 0 {
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("MessageNotInflight")})
			continue
		}
		until := time.Now().Add(time.Duration(e.VisibilityTimeout) * time.Second)
		if until.Sub(q.all[i].first) > 12*time.Hour {
			q.wrong = append(q.wrong, q.all[i].id+" was to be hidden for more than 12 hours")
			out.Failed = append(out.Failed, types.BatchResultErrorEntry{Id: e.Id, Code: aws.String("InvalidParameterValue")})
			continue
		}
		q.all[i].hidden = until
	}
	return &out, nil
}
