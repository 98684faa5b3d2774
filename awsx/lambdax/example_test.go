package lambdax_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/awsx/lambdax"
)

// In a batch of two messages, one can never be handled.
func ExampleNewSQS() {
	letters := printed{}
	queue, err := lambdax.NewSQS(lambdax.SQSOptions{
		Handle: func(_ context.Context, m *lambdax.Message) error {
			if m.Body == "" {
				return lambdax.Permanent(errors.New("it is empty"))
			}
			fmt.Println("handled", m.Body)
			return nil
		},
		Records:  new(lambdax.MemoryRecords),
		Letters:  letters,
		Parallel: 1,
	})
	if err != nil {
		panic(err)
	}
	answer, _ := queue.Batch(context.Background(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "1", Body: "hello", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:messages"},
		{MessageId: "2", EventSourceARN: "arn:aws:sqs:eu-central-1:123456789012:messages"},
	}})
	fmt.Println("to come again:", len(answer.BatchItemFailures))
	// Output:
	// handled hello
	// dead letter 2: rejected
	// to come again: 0
}

type printed struct{}

func (printed) Put(_ context.Context, l *lambdax.Letter) error {
	fmt.Printf("dead letter %s: %s\n", l.MessageId, l.Reason)
	return nil
}

// In a Lambda function, DynamoDB remembers handled messages, and dead letters go to a queue.
func ExampleNewSQS_lambda() {
	var tables *dynamodb.Client
	var queues *sqs.Client
	_, err := lambdax.NewSQS(lambdax.SQSOptions{
		Handle:   func(context.Context, *lambdax.Message) error { return nil },
		Records:  &lambdax.DynamoRecords{Client: tables, Table: "messages"},
		Letters:  &lambdax.SQSLetters{Client: queues, URL: "https://sqs.eu-central-1.amazonaws.com/123456789012/dead"},
		Delays:   &lambdax.SQSDelays{Client: queues, URL: "https://sqs.eu-central-1.amazonaws.com/123456789012/messages"},
		Attempts: 5,
	})
	fmt.Println(err, lambdax.WhyAttribute, lambdax.MaxStalls)
	// Output: <nil> WeirDeadLetter 3
}

// Errors in a function's deployment are reported when it starts.
func ExampleInspect() {
	start := func(ctx context.Context, functions *lambda.Client, queues *sqs.Client) error {
		return lambdax.Inspect(ctx, functions, queues, "processor", lambdax.Processor)
	}
	_ = start
	mapping := lambdax.Mapping{Queue: "arn:aws:sqs:eu-central-1:123456789012:messages", Visibility: lambdax.Processor.Limit()}
	fmt.Println(mapping.Check(lambdax.Processor.Limit()) != nil) // it does not report which messages failed
	// Output: true
}

// An error names the invalid field of a request to its caller.
func ExampleNewWeb() {
	web, err := lambdax.NewWeb(lambdax.WebOptions{Handle: func(w http.ResponseWriter, r *http.Request) error {
		if lambdax.V1Of(r.Context()) != nil || lambdax.V2Of(r.Context()) == nil || lambdax.Correlation(r.Context()) == "" {
			return errors.New("the event is not that of an HTTP API")
		}
		if r.FormValue("message") == "" {
			return lambdax.Invalid("message", "must not be empty")
		}
		return nil
	}})
	if err != nil {
		panic(err)
	}
	var event events.APIGatewayV2HTTPRequest
	event.RequestContext.HTTP.Method, event.RawPath, event.RequestContext.RequestID = http.MethodGet, "/messages", "r1"
	answer, _ := web.V2(context.Background(), event)
	fmt.Println(answer.StatusCode, strings.TrimSpace(answer.Body))
	// Output: 400 {"error":{"code":"VALIDATION_ERROR","message":"message: must not be empty","details":{"field":"message","reason":"must not be empty"}}}
}
