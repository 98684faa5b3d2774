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

// An API is what a Store needs of a client of DynamoDB. *dynamodb.Client is one.
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

// Options are what can be set of a Store. The zero Options are good for DynamoDB.
type Options struct {
	// Margin is how far the clocks of the servers that answer may be apart; 0 means
	// 20ms, below 0 none. While a process knows an item from others only by the bounds of
	// the clock, it waits up to twice as long before it uses what has run out.
	Margin time.Duration

	// Lanes is how many lanes an item remembers; 0 means 32. With more in use at once
	// a repeat may be executed as a new call, without what it gives back.
	Lanes int

	// Items is how many items the process remembers; 0 means 10,000. One that is
	// not remembered costs a failed condition.
	Items int

	// Observe is called after each call of Take, Beat, Load, Swap and Create, and after each time that the table's
	// clock was learned in the background; it must not block.
	Observe func(Call)

	now    func() time.Time // for tests; with a monotonic reading
	exact  func() time.Time // for tests: the server's clock itself
	sleep  func(ctx context.Context, d time.Duration) error
	jitter func(d time.Duration) time.Duration // below d
}

// A Call is what became of one call to a Store.
type Call struct {
	Op        string // take, beat, load, swap, create, or clock: what was sent in the background to learn the table's clock
	Group     string
	Requests  int // sent to DynamoDB, the first included
	Failed    int // whose condition did not hold
	Throttled int // that DynamoDB refused for rate
	Retried   int // after throttling, errors of the server, and broken connections
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
	pending map[uint64]*failure // asks of which it is not known what became
	heard   map[laneKey]memory
	first   chan struct{} // held by the call that makes the first request

	background sync.WaitGroup // what goes on beside the calls, until Close
	ctx        context.Context
	stop       context.CancelFunc

	takes, requests, failed, throttled, retried atomic.Int64
}

var (
	_ fleet.Store   = (*Store)(nil)
	_ fleet.Named   = (*Store)(nil)
	_ fleet.Clocked = (*Store)(nil)
)

// Name is the name of the table.
func (s *Store) Name() string { return "dynamodb " + s.table }

// New makes a Store of a table that Create has made. Whatever retries the client is
// configured for are not used: the Store makes its own, at most five, and knows
// which of them may have been executed.
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

// Stats are sums since the Store was made.
func (s *Store) Stats() Stats {
	return Stats{s.takes.Load(), s.requests.Load(), s.failed.Load(), s.throttled.Load(), s.retried.Load()}
}

// Init is fleet.Store's. A table forgets nothing, so a group that it does not know is new.
func (s *Store) Init(context.Context, string) error { return nil }

// Known is fleet.Store's.
func (s *Store) Known(context.Context, string) (time.Time, bool, error) {
	return time.Time{}, true, nil
}

// Close is fleet.Store's: it ends what goes on in the background. The client is the caller's.
func (s *Store) Close() error {
	s.stop()
	s.background.Wait()
	return nil
}

// nonce is a text that no other has.
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
