package lambdax

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"
)

// SQSAPI is the part of *sqs.Client that SQSLetters and SQSDelays need. It must be safe for concurrent use.
type SQSAPI interface {
	SendMessage(context.Context, *sqs.SendMessageInput, ...func(*sqs.Options)) (*sqs.SendMessageOutput, error)
	ChangeMessageVisibility(context.Context, *sqs.ChangeMessageVisibilityInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityOutput, error)
}

// SQSLetters store dead letters in a queue. A letter has the message's body and attributes, and the reason as JSON in the
// attribute WeirDeadLetter. The reason is omitted if it does not fit (10 attributes, or the size). SQS keeps a message for 14
// days at most. SQSLetters are safe for concurrent use.
type SQSLetters struct {
	Client SQSAPI
	URL    string // of the dead letter queue; for a FIFO queue it ends with .fifo
}

// SQSDelays postpone messages by their visibility timeout. They are safe for concurrent use.
type SQSDelays struct {
	Client SQSAPI
	URL    string // of the function's queue
}

var (
	_ Letters = (*SQSLetters)(nil)
	_ Delays  = (*SQSDelays)(nil)
)

// WhyAttribute is the attribute of a dead letter with the reason.
const WhyAttribute = "WeirDeadLetter"

// mostAttributes is the maximum number of attributes in SQS.
const mostAttributes = 10

// Put implements Letters.
func (l *SQSLetters) Put(ctx context.Context, letter *Letter) error {
	m := letter.Message
	in := &sqs.SendMessageInput{QueueUrl: &l.URL, MessageBody: &m.Body, MessageAttributes: attributesOf(&m.SQSMessage)}
	if strings.HasSuffix(l.URL, ".fifo") {
		in.MessageGroupId, in.MessageDeduplicationId = aws.String(m.Attributes["MessageGroupId"]), &m.MessageId
		if *in.MessageGroupId == "" {
			in.MessageGroupId = aws.String("weir")
		}
	}
	if len(in.MessageAttributes) < mostAttributes {
		in.MessageAttributes[WhyAttribute] = types.MessageAttributeValue{DataType: aws.String("String"), StringValue: aws.String(why(letter))}
	}
	_, err := l.Client.SendMessage(ctx, in)
	if _, full := in.MessageAttributes[WhyAttribute]; full && tooLong(err) {
		delete(in.MessageAttributes, WhyAttribute)
		_, err = l.Client.SendMessage(ctx, in)
	}
	if err != nil {
		return fmt.Errorf("send the dead letter to %s: %w", l.URL, err)
	}
	return nil
}

func tooLong(err error) bool {
	e, ok := errors.AsType[smithy.APIError](err)
	return ok && (strings.Contains(e.ErrorCode(), "InvalidParameterValue") || strings.Contains(e.ErrorCode(), "MessageTooLong"))
}

// why returns the reason as JSON.
func why(l *Letter) string {
	text, err := json.Marshal(map[string]any{
		"reason": l.Reason, "detail": sendable(l.Detail), "attempts": l.Attempts, "message_id": l.MessageId, "queue": l.EventSourceARN, "at": time.Now().UTC(),
	})
	if err != nil {
		panic(fmt.Errorf("the dead letter is not JSON: %w", err))
	}
	return string(text)
}

// sendable replaces characters that SQS rejects. json.Marshal has already escaped control characters.
func sendable(s string) string {
	return strings.Map(func(r rune) rune {
		if r == 0xFFFE || r == 0xFFFF || r == 0x7F {
			return '?'
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
}

// attributesOf returns the attributes of a message in the form for sending.
func attributesOf(m *events.SQSMessage) map[string]types.MessageAttributeValue {
	out := make(map[string]types.MessageAttributeValue, len(m.MessageAttributes)+1)
	for _, name := range slices.Sorted(maps.Keys(m.MessageAttributes)) {
		a := m.MessageAttributes[name]
		if a.StringValue == nil && a.BinaryValue == nil {
			continue // lists, which SQS rejects
		}
		out[name] = types.MessageAttributeValue{DataType: aws.String(a.DataType), StringValue: a.StringValue, BinaryValue: a.BinaryValue}
	}
	return out
}

// longestDelay is below SQS's maximum visibility timeout, because the current receive has already used a part of it.
const longestDelay = 11 * time.Hour

// Delay implements Delays.
func (q *SQSDelays) Delay(ctx context.Context, m *Message, d time.Duration) error {
	seconds := int32(math.Ceil(min(d, longestDelay).Seconds()))
	_, err := q.Client.ChangeMessageVisibility(ctx, &sqs.ChangeMessageVisibilityInput{QueueUrl: &q.URL, ReceiptHandle: &m.ReceiptHandle, VisibilityTimeout: seconds})
	if err != nil {
		return fmt.Errorf("message %s of %s: %w", m.MessageId, q.URL, err)
	}
	return nil
}
