package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/awsx/lambdax"
)

// runFunction runs the program as the Lambda function api, processor or scheduler. template.yaml has its environment.
func runFunction(ctx context.Context, handler string, out io.Writer) error {
	c, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	f := &Functions{Config: c, Log: slog.New(slog.NewJSONHandler(out, nil)), Env: os.Getenv}
	switch handler {
	case "api":
		web, err := f.API(ctx)
		if err != nil {
			return err
		}
		lambda.Start(web.V2)
	case "processor":
		batch, err := f.Processor()
		if err != nil {
			return err
		}
		lambda.Start(batch)
	case "scheduler":
		tick, err := f.Scheduler()
		if err != nil {
			return err
		}
		lambda.Start(tick)
	}
	return fmt.Errorf("no function %q: want api, processor or scheduler", handler)
}

// Functions creates the Lambda functions.
type Functions struct {
	Config aws.Config
	Log    *slog.Logger
	Env    func(string) string
	Ntfy   *Ntfy // nil creates one
}

func (f *Functions) table() *Table {
	return &Table{DB: dynamodb.NewFromConfig(f.Config), Name: f.Env("TABLE"), SNS: sns.NewFromConfig(f.Config), TopicARN: f.Env("TOPIC_ARN")}
}

// API returns the function for requests of API Gateway.
func (f *Functions) API(ctx context.Context) (*lambdax.Web, error) {
	return NewWeb(ctx, Options{JWKS: f.Env("JWKS"), Issuer: f.Env("ISSUER"), Audience: f.Env("AUDIENCE")}, f.table(), f.Log)
}

// A Batch is a function for SQS messages.
type Batch func(context.Context, events.SQSEvent) (events.SQSEventResponse, error)

// Processor returns the function that sends the messages of the queue. Permanent failures go to the queue of dead letters.
func (f *Functions) Processor() (Batch, error) {
	n := f.Ntfy
	if n == nil {
		alerts, err := newAlerts(f.Log)
		if err != nil {
			return nil, err
		}
		if n, err = NewNtfy("", f.Env("NTFY"), Choices{f.Env("OPEN"), f.Env("LOST")}, f.Log, alerts, nil); err != nil {
			return nil, err
		}
	}
	p := &Processor{Table: f.table(), Ntfy: n, Topic: f.Env("NTFY_TOPIC"), Lease: time.Minute}
	queues := sqs.NewFromConfig(f.Config)
	s, err := lambdax.NewSQS(lambdax.SQSOptions{
		Handle: p.Handle, Log: f.Log,
		Letters: &lambdax.SQSLetters{Client: queues, URL: f.Env("DEAD_URL")},
		Delays:  &lambdax.SQSDelays{Client: queues, URL: f.Env("QUEUE_URL")},
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, e events.SQSEvent) (events.SQSEventResponse, error) {
		out, err := s.Batch(ctx, e)
		if n.Alerts != nil { // Lambda freezes the function after it returns
			within, cancel := context.WithTimeout(ctx, 2*time.Second)
			defer cancel()
			_ = n.Alerts.Flush(within)
		}
		return out, err
	}, nil
}

// Scheduler returns the function that creates scheduled messages, and publishes stored messages that were not published. It
// runs every minute.
func (f *Functions) Scheduler() (func(context.Context) error, error) {
	entries, err := ReadSchedule(f.Env("SCHEDULE"))
	if err != nil {
		return nil, err
	}
	s := &Schedule{Entries: entries, Store: f.table(), Log: f.Log, Late: 10 * time.Minute}
	return func(ctx context.Context) error {
		now := time.Now()
		s.Tick(ctx, now)
		return errors.Join(f.table().Sweep(ctx, now.Add(-time.Minute)))
	}, nil
}
