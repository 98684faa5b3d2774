// Package dynamosqs keeps deliveries in AWS, for a fleet of weirs that share them: in a table of DynamoDB, which is the truth, with a queue
// of SQS that says that something is due. Init makes both.
//
// A record is one item, and every change of it is one conditional write on the version that was read. DynamoDB's transactions are not
// used: what must follow a change (the next of an order key is queued, a message is sent) is repeatable, and the record says that it is
// still to be done until it was: a sweep does what a process that ended has left. A message carries no more than a number; one
// that is lost, comes twice or comes late does no harm.
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

// A Table is what a Store needs of a client of DynamoDB. *dynamodb.Client is one.
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

// A Queue is what a Store needs of a client of SQS. *sqs.Client is one.
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

// Options say where deliveries are kept, and how. Without a Table and a Name there is no default.
type Options struct {
	Table    Table
	Name     string        // of the table
	Queue    Queue         // nil: no messages; what is due is found by looking
	QueueURL string        // of a standard queue
	Keep     time.Duration // how long what was delivered is kept; 0 means 7 days
	KeepDead time.Duration // how long dead letters are kept; 0 means 30 days

	MaxStored int64 // deliveries that are stored at most, whatever their status; 0 means 10 million. A named tenant may have half of them
	MaxSize   int64 // bytes of their requests; 0 means 64 GiB. A named tenant may have half of them
}

// bounds of what one ask of AWS takes.
const (
	accepting = 950 * time.Millisecond // whoever hands something in waits for a second
	asking    = 5 * time.Second
	atOnce    = 16 // requests of one ask
)

// A Store keeps deliveries in a table. Time is that of the process: what another process has claimed is taken for lost only skew after its
// lease. It is safe for concurrent use.
type Store struct {
	o     Options
	home  int64 // names this store among those that share the table
	order atomic.Int64
	waker *waker // nil without a queue

	usage usage

	mu     sync.Mutex
	owed   owed
	known  map[string]bool // upstreams that the table lists
	summed time.Time       // the counts were last compared with what there is
	swept  [watches]item   // where the last sweep stopped in each partition of what is to be looked at; nil at its end
}

// skew is how far the clocks of two processes may be apart.
const skew = 5 * time.Second

// New is a store of a table, which need not be there yet: see Check.
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

// Close waits for what is being sent.
func (s *Store) Close() error {
	if s.waker != nil {
		s.waker.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), accepting)
	defer cancel()
	s.pay(ctx)
	return nil
}

// keepKeys is how long an idempotency key is known, counted from when it came.
func (s *Store) keepKeys() int64 { return max(s.o.Keep, s.o.KeepDead).Milliseconds() }

func now() int64 { return time.Now().UnixMilli() }

// nextOrder is a place in lists: later requests have higher ones, as far as the clocks of processes agree.
func (s *Store) nextOrder() int64 {
	for {
		was := s.order.Load()
		is := max(now()<<20, (was|0xff)+1) | rand.Int64N(1<<8)
		if s.order.CompareAndSwap(was, is) {
			return is
		}
	}
}

// each does something for several at once.
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

// explain names the table.
func (s *Store) explain(doing string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: dynamodb table %q: %w", doing, s.o.Name, err)
}
