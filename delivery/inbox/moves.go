package inbox

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// Tasks contains the methods of an SQS client that Moves needs. *sqs.Client implements it. Tasks must be safe for
// concurrent use.
type Tasks interface {
	StartMessageMoveTask(context.Context, *sqs.StartMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.StartMessageMoveTaskOutput, error)
	ListMessageMoveTasks(context.Context, *sqs.ListMessageMoveTasksInput, ...func(*sqs.Options)) (*sqs.ListMessageMoveTasksOutput, error)
	CancelMessageMoveTask(context.Context, *sqs.CancelMessageMoveTaskInput, ...func(*sqs.Options)) (*sqs.CancelMessageMoveTaskOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var _ Tasks = (*sqs.Client)(nil)

// Moves moves all messages of a dead letter queue back to their original queue. Moves is safe for concurrent use.
type Moves struct {
	Tasks    Tasks
	queue    redrive
	DeadURL  string // of the dead letter queue
	Messages int64  // approximate number of messages in it
}

// A Move is a running or ended move, as reported by SQS.
type Move struct {
	Status  string    `json:"status"` // RUNNING, COMPLETED, CANCELLING, CANCELLED or FAILED
	Moved   int64     `json:"moved"`
	Of      int64     `json:"of,omitempty"` // 0 until SQS has counted them
	Started time.Time `json:"started"`
	Why     string    `json:"why,omitempty"` // reason of a failure

	handle string
}

// Ended reports whether the move has stopped.
func (m *Move) Ended() bool { return m.Status != "RUNNING" && m.Status != "CANCELLING" }

// MostPerSecond is the highest rate of a move that SQS accepts.
const MostPerSecond = 500

// MovesOf returns the Moves of the original queue with a URL. It returns an error if the queue has no dead letter
// queue.
func MovesOf(ctx context.Context, c Tasks, at string) (*Moves, error) {
	r, err := redriveOf(ctx, c, at)
	if err != nil {
		return nil, fmt.Errorf("sqs queue %s: %w", at, err)
	}
	if r.dead == "" {
		return nil, fmt.Errorf("sqs queue %s: it has no dead letter queue (RedrivePolicy): name the queue that the dead letters came from", at)
	}
	m := &Moves{Tasks: c, queue: r}
	if m.DeadURL, err = beside(at, r.dead); err != nil {
		return nil, fmt.Errorf("sqs queue %s: %w", at, err)
	}
	dead, err := redriveOf(ctx, c, m.DeadURL)
	if err != nil {
		return nil, fmt.Errorf("its dead letter queue %s: %w", m.DeadURL, err)
	}
	m.Messages = dead.messages
	return m, nil
}

func beside(at, arn string) (string, error) {
	// An ARN is arn:aws:sqs:REGION:ACCOUNT:NAME. The URL is on the server of the other queue.
	u, err := url.Parse(at)
	parts := strings.Split(arn, ":")
	if err != nil || len(parts) != 6 {
		return "", fmt.Errorf("the ARN %q of its dead letter queue cannot be read", arn)
	}
	u.Path = "/" + parts[4] + "/" + parts[5]
	return u.String(), nil
}

// Start starts to move all messages, at most perSecond of them per second. With 0, SQS chooses the rate.
func (m *Moves) Start(ctx context.Context, perSecond int32) error {
	in := &sqs.StartMessageMoveTaskInput{SourceArn: &m.queue.dead, DestinationArn: &m.queue.arn} // without it, the move fails for messages that were sent directly to the dead letter queue
	if perSecond > 0 {
		in.MaxNumberOfMessagesPerSecond = &perSecond
	}
	_, err := m.Tasks.StartMessageMoveTask(ctx, in)
	return err
}

// Latest returns the move that started last. It returns false if SQS reports none. SQS forgets moves after some time.
func (m *Moves) Latest(ctx context.Context) (Move, bool, error) {
	out, err := m.Tasks.ListMessageMoveTasks(ctx, &sqs.ListMessageMoveTasksInput{SourceArn: &m.queue.dead, MaxResults: aws.Int32(1)})
	if err != nil || len(out.Results) == 0 {
		return Move{}, false, err
	}
	return moveOf(&out.Results[0]), true, nil
}

func moveOf(r *types.ListMessageMoveTasksResultEntry) Move {
	return Move{Status: aws.ToString(r.Status), Moved: r.ApproximateNumberOfMessagesMoved, Of: aws.ToInt64(r.ApproximateNumberOfMessagesToMove),
		Started: time.UnixMilli(r.StartedTimestamp), Why: aws.ToString(r.FailureReason), handle: aws.ToString(r.TaskHandle)}
}

// Cancel stops a running move. Messages that were moved are not moved back.
func (m *Moves) Cancel(ctx context.Context, of Move) error {
	if of.handle == "" {
		return errors.New("only a running move can be canceled")
	}
	_, err := m.Tasks.CancelMessageMoveTask(ctx, &sqs.CancelMessageMoveTaskInput{TaskHandle: &of.handle})
	return err
}

// String returns the progress of a move.
func (m Move) String() string {
	said := strconv.FormatInt(m.Moved, 10)
	if m.Of > 0 {
		said += " of " + strconv.FormatInt(m.Of, 10)
	}
	return said + " moved"
}
