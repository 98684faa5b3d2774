package dynamostore

import (
	"cmp"
	"context"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/fleet"
)

// API is the part of a DynamoDB client that a Store needs. *dynamodb.Client implements it. It must be safe for
// concurrent use.
type API interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	BatchGetItem(context.Context, *dynamodb.BatchGetItemInput, ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error)
	PutItem(context.Context, *dynamodb.PutItemInput, ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error)

	// For Create.
	CreateTable(context.Context, *dynamodb.CreateTableInput, ...func(*dynamodb.Options)) (*dynamodb.CreateTableOutput, error)
	DescribeTable(context.Context, *dynamodb.DescribeTableInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error)
	DescribeTimeToLive(context.Context, *dynamodb.DescribeTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.DescribeTimeToLiveOutput, error)
	UpdateTimeToLive(context.Context, *dynamodb.UpdateTimeToLiveInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateTimeToLiveOutput, error)
}

var _ API = (*dynamodb.Client)(nil)

// Options configure a Store. The zero Options are suitable for DynamoDB.
type Options struct {
	// Margin is the maximum difference between the clocks of DynamoDB's servers. 0 means 20ms, a negative value
	// means none. While a process knows the age of an item only from the bounds of the clock, it uses expired units
	// up to twice the Margin late.
	Margin time.Duration

	// Lanes is how many lanes an item stores. 0 means 32. With more active lanes, a repeat may be executed as a new
	// call, without its returns.
	Lanes int

	// Items is how many items the process keeps a copy of. 0 means 10,000. A missing copy costs a failed condition.
	Items int

	// Observe is called after each call of Take, Beat, Load, Swap and Create, and after each background measurement
	// of the table's clock. It must not block.
	Observe func(Call)

	now    func() time.Time // for tests; its results have a monotonic reading
	exact  func() time.Time // for tests: the server's exact clock
	sleep  func(ctx context.Context, d time.Duration) error
	jitter func(d time.Duration) time.Duration // a random duration below d
}

// A Call is the result of one call to a Store.
type Call struct {
	Op        string // take, beat, load, swap, create, or clock for a measurement of the table's clock
	Group     string
	Requests  int // sent to DynamoDB, including the first
	Failed    int // requests whose condition did not hold
	Throttled int // requests that DynamoDB throttled
	Retried   int // requests repeated after throttling, server errors and broken connections
	Took      time.Duration
	Err       error
}

// Stats are sums over all calls.
type Stats struct {
	Takes, Requests, Failed, Throttled, Retried int64
}

// A Store keeps limits in a table. It is safe for concurrent use.
type Store struct {
	api   API
	table string
	o     Options
	clock keeper

	throttle throttle

	mu      sync.Mutex
	items   map[string]*entry
	rosters map[string]*roster
	pending map[uint64]*failure // failed asks whose effect is unknown
	heard   map[laneKey]memory
	first   chan struct{} // held by the call that sends the first request

	background sync.WaitGroup // background work, until Close
	ctx        context.Context
	stop       context.CancelFunc

	takes, requests, failed, throttled, retried atomic.Int64
}

var (
	_ fleet.Store   = (*Store)(nil)
	_ fleet.Named   = (*Store)(nil)
	_ fleet.Clocked = (*Store)(nil)
)

// Name returns "dynamodb" and the name of the table.
func (s *Store) Name() string { return "dynamodb " + s.table }

// New returns a Store for a table that Create has made. The Store disables the client's retries. It retries at most
// five times itself, because it must know which attempts may have been executed.
func New(api API, table string, o Options) *Store {
	o.Margin = max(0, cmp.Or(o.Margin, 20*time.Millisecond))
	o.Lanes = cmp.Or(o.Lanes, 32)
	o.Items = cmp.Or(o.Items, 10_000)
	if o.now == nil {
		o.now = time.Now
	}
	if o.sleep == nil {
		o.sleep = sleep
	}
	if o.jitter == nil {
		o.jitter = func(d time.Duration) time.Duration { return rand.N(max(1, d)) }
	}
	s := &Store{api: api, table: table, o: o, items: make(map[string]*entry), rosters: make(map[string]*roster), pending: make(map[uint64]*failure), heard: make(map[laneKey]memory)}
	s.first = make(chan struct{}, 1)
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.clock.begin(o)
	return s
}

// Stats returns the sums since New.
func (s *Store) Stats() Stats {
	return Stats{s.takes.Load(), s.requests.Load(), s.failed.Load(), s.throttled.Load(), s.retried.Load()}
}

// Init implements fleet.Store. A table does not lose data, so a group that it does not contain is new.
func (s *Store) Init(context.Context, string) error { return nil }

// Known implements fleet.Store.
func (s *Store) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close ends the background work. The caller must close the client itself.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	return nil
}

// nonce returns a unique text.
func (s *Store) nonce() string { return strconv.FormatUint(rand.Uint64(), 36) }

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
