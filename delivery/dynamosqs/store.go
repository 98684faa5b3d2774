// Package dynamosqs stores deliveries in AWS, where several processes may share them. A DynamoDB table is
// authoritative. An SQS queue announces due deliveries. Init creates both.
//
// A record is one item. Every change is one write that is conditional on the version that was read. The package does
// not use DynamoDB's transactions. The steps that follow a change, such as queueing the next delivery of an order key
// or sending a message, are repeatable. The record contains a mark until it is done, so a sweep completes the work of a
// process that ended. A message contains only a reference to a delivery. Lost, duplicate and late messages do no harm.
package dynamosqs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir/delivery"
)

// A Table contains the methods of a DynamoDB client that a Store needs. *dynamodb.Client implements it. A Table must be
// safe for concurrent use.
type Table interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	DeleteItem(context.Context, *dynamodb.DeleteItemInput, ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error)
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)

	// For Init and Check.
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

// A Queue contains the methods of an SQS client that a Store needs. *sqs.Client implements it. A Queue must be safe for
// concurrent use.
type Queue interface {
	SendMessageBatch(context.Context, *sqs.SendMessageBatchInput, ...func(*sqs.Options)) (*sqs.SendMessageBatchOutput, error)
	ReceiveMessage(context.Context, *sqs.ReceiveMessageInput, ...func(*sqs.Options)) (*sqs.ReceiveMessageOutput, error)
	DeleteMessageBatch(context.Context, *sqs.DeleteMessageBatchInput, ...func(*sqs.Options)) (*sqs.DeleteMessageBatchOutput, error)
	ChangeMessageVisibilityBatch(context.Context, *sqs.ChangeMessageVisibilityBatchInput, ...func(*sqs.Options)) (*sqs.ChangeMessageVisibilityBatchOutput, error)

	// For Init and Check.
	CreateQueue(context.Context, *sqs.CreateQueueInput, ...func(*sqs.Options)) (*sqs.CreateQueueOutput, error)
	GetQueueAttributes(context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error)
}

var (
	_ Table          = (*dynamodb.Client)(nil)
	_ Queue          = (*sqs.Client)(nil)
	_ delivery.Queue = (*Store)(nil)
)

// Options are the settings of a Store. Table and Name are required.
type Options struct {
	Table    Table
	Name     string        // of the table
	Queue    Queue         // nil means no messages: due deliveries are found by polling
	QueueURL string        // of a standard queue
	Keep     time.Duration // how long completed deliveries are kept; 0 means 7 days
	KeepDead time.Duration // how long dead letters are kept; 0 means 30 days

	MaxStored int64 // maximum number of stored deliveries of any status; 0 means 10 million. A named tenant may have half of them
	MaxSize   int64 // maximum total size of their requests in bytes; 0 means 64 GiB. A named tenant may use half of it
}

// Limits of one operation.
const (
	accepting = 950 * time.Millisecond // callers wait for one second
	asking    = 5 * time.Second
	atOnce    = 16 // concurrent requests
)

// A Store stores deliveries in a table. It uses the clock of its process. To allow for differences of clocks, it
// considers a claim of another process lost only skew after its lease. A Store is safe for concurrent use.
type Store struct {
	o     Options
	home  int64 // identifies this store among those that share the table
	order atomic.Int64
	waker *waker // nil without a queue

	usage usage

	mu     sync.Mutex
	owed   owed
	known  map[string]bool // upstreams in the table's list
	summed time.Time       // when the counts were last compared with the deliveries
	unsure []*record       // claims that may be stored or not
	swept  [watches]item   // where the last sweep stopped in each partition of the index watch; nil if it reached the end
}

// skew is the assumed maximum difference between the clocks of two processes.
const skew = 5 * time.Second

// New returns a store for a table, which need not exist yet: see Check.
func New(o Options) (*Store, error) {
	o.Keep, o.KeepDead = cmp.Or(o.Keep, 7*24*time.Hour), cmp.Or(o.KeepDead, 30*24*time.Hour)
	switch {
	case o.Table == nil || o.Name == "":
		return nil, errors.New("deliveries in AWS need a table")
	case o.Queue != nil && o.QueueURL == "":
		return nil, errors.New("deliveries in AWS need the URL of a queue")
	}
	o.MaxStored, o.MaxSize = cmp.Or(o.MaxStored, 10_000_000), cmp.Or(o.MaxSize, 64<<30)
	s := &Store{o: o, home: rand.Int64(), owed: newOwed(), known: make(map[string]bool), usage: usage{total: newMeter(), tenants: make(map[string]*meter)}}
	if o.Queue != nil {
		s.waker = newWaker(s)
	}
	return s, nil
}

// Close waits for pending messages and writes.
func (s *Store) Close() error {
	if s.waker != nil {
		s.waker.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), accepting)
	defer cancel()
	s.pay(ctx)
	return nil
}

// keepKeys returns how long, in milliseconds, an idempotency key is kept after its request was accepted.
func (s *Store) keepKeys() int64 { return max(s.o.Keep, s.o.KeepDead).Milliseconds() }

func now() int64 { return time.Now().UnixMilli() }

// nextOrder returns a position for lists. Later requests have higher positions, within the accuracy of the processes'
// clocks.
func (s *Store) nextOrder() int64 {
	for {
		was := s.order.Load()
		is := max(now()<<20, (was|0xff)+1) | rand.Int64N(1<<8)
		if s.order.CompareAndSwap(was, is) {
			return is
		}
	}
}

// each calls do for all elements, up to atOnce concurrently.
func each[T any](all []T, do func(i int, v T) error) error {
	errs := make([]error, len(all))
	var wg sync.WaitGroup
	turns := make(chan struct{}, atOnce)
	for i, v := range all {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			errs[i] = do(i, v)
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// explain adds the name of the table to an error.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: dynamodb table %q: %w", doing, s.o.Name, err)
}
