package serve

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/delivery/dynamosqs"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// newAWSDeliveries returns the store with a table and a queue. Queue requests go to the server of the queue's URL.
func newAWSDeliveries(c *config.Deliveries) (*dynamosqs.Store, error) {
	cfg, err := awsDefaults(c.AWS.Region)
	if err != nil {
		return nil, fmt.Errorf("deliveries: aws: %w", err)
	}
	o := dynamosqs.Options{Name: c.AWS.Table, QueueURL: c.AWS.Queue, Keep: c.Keep, KeepDead: c.KeepDead, MaxStored: c.MaxStored, MaxSize: c.MaxSize,
		Table: dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
			if c.AWS.Endpoint != "" {
				o.BaseEndpoint = &c.AWS.Endpoint
			}
		})}
	if c.AWS.Queue != "" {
		at, err := url.Parse(c.AWS.Queue)
		if err != nil {
			return nil, fmt.Errorf("deliveries: aws: queue: %w", err)
		}
		o.Queue = sqs.NewFromConfig(cfg, func(o *sqs.Options) { o.BaseEndpoint = aws.String(at.Scheme + "://" + at.Host) })
	}
	return dynamosqs.New(o)
}

// tryAWSDeliveries returns the trial that checks the table and the queue.
func tryAWSDeliveries(c *config.Deliveries) trial {
	return trial{"deliveries aws", func(ctx context.Context) (string, error) {
		s, err := newAWSDeliveries(c)
		if err != nil {
			return "", err
		}
		defer s.Close()
		begin := time.Now()
		if err := s.Check(ctx); err != nil {
			return "", err
		}
		if err := s.CheckTTL(ctx); err != nil {
			return "", err
		}
		return fmt.Sprintf("answers in %v, its table and its queue exist", time.Since(begin).Round(100*time.Microsecond)), nil
	}}
}
