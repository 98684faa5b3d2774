package inbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

// How often a message is received before SQS moves it to the dead letter queue: the value that Init sets, and the
// smallest acceptable one. Receives of processes that ended with messages in hand count too.
const (
	mostReceives  = 10
	leastReceives = 3
)

// A SetupError means that the queue is unsuitable for an Inbox.
type SetupError struct{ Queue, Why, Do string }

func (e *SetupError) Error() string { return fmt.Sprintf("sqs queue %s: %s; %s", e.Queue, e.Why, e.Do) }

// Init creates the queue and its dead letter queue if the queue does not exist, and then checks it.
func (b *Inbox) Init(ctx context.Context) (made bool, err error) {
	if _, err = redriveOf(ctx, b.Queue, b.URL); missing(err) {
		made, err = true, b.make(ctx)
	}
	if err != nil {
		return made, fmt.Errorf("create the queue %s: %w", b.URL, err)
	}
	return made, b.Check(ctx)
}

func missing(err error) bool {
	_, is := errors.AsType[*types.QueueDoesNotExist](err)
	return is
}

func (b *Inbox) make(ctx context.Context) error {
	name := path.Base(b.URL)
	letters := name + "-dead"
	kind := map[string]string{"MessageRetentionPeriod": strconv.Itoa(14 * 24 * 3600)}
	if b.fifo() {
		letters = strings.TrimSuffix(name, ".fifo") + "-dead.fifo"
		kind["FifoQueue"] = "true"
	}
	dead, err := b.Queue.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &letters, Attributes: kind})
	if err != nil {
		return err
	}
	of, err := b.Queue.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: dead.QueueUrl, AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameQueueArn}})
	if err != nil {
		return err
	}
	redrive, _ := json.Marshal(map[string]string{"deadLetterTargetArn": of.Attributes["QueueArn"], "maxReceiveCount": strconv.Itoa(mostReceives)})
	kind["RedrivePolicy"], kind["VisibilityTimeout"] = string(redrive), strconv.Itoa(int(unseen/time.Second))
	_, err = b.Queue.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: &name, Attributes: kind})
	return err
}

// Check checks that the queue can be reached and has a dead letter queue. Without one, it returns a SetupError.
func (b *Inbox) Check(ctx context.Context) error {
	r, err := redriveOf(ctx, b.Queue, b.URL)
	switch {
	case missing(err):
		return &SetupError{b.URL, "there is none", "run weir store init"}
	case err != nil:
		return fmt.Errorf("sqs queue %s: %w", b.URL, err)
	case r.dead == "":
		return &SetupError{b.URL, "it has no dead letter queue, so an unreadable message would be received again and again", "give it a RedrivePolicy with maxReceiveCount " + strconv.Itoa(mostReceives)}
	case r.receives < leastReceives:
		return &SetupError{b.URL, fmt.Sprintf("its maxReceiveCount is %d, which is too low: each weir that stops while it handles a message uses one", r.receives), "set it to " + strconv.Itoa(mostReceives)}
	}
	return nil
}

// A redrive contains a queue's attributes that concern dead letters.
type redrive struct {
	arn      string // of the queue
	dead     string // ARN of its dead letter queue; may be empty
	receives int
	messages int64 // approximate number of messages in the queue
}

// An attributes is a client that reads a queue's attributes.
type attributes interface {
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

func redriveOf(ctx context.Context, c attributes, url string) (r redrive, err error) {
	out, err := c.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{QueueUrl: aws.String(url), AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameAll}})
	if err != nil {
		return r, err
	}
	var policy struct {
		Dead     string          `json:"deadLetterTargetArn"`
		Receives json.RawMessage `json:"maxReceiveCount"`
	}
	_ = json.Unmarshal([]byte(out.Attributes["RedrivePolicy"]), &policy)
	receives, _ := strconv.Atoi(strings.Trim(string(policy.Receives), `"`))
	messages, _ := strconv.ParseInt(out.Attributes["ApproximateNumberOfMessages"], 10, 64)
	return redrive{out.Attributes["QueueArn"], policy.Dead, receives, messages}, nil
}
