package dynamosqs_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/dynamosqs"
)

// A stopping table stops responding before one of its requests. When it responds again, it executes the requests that
// arrived meanwhile, even if their callers have given up. Real tables do that, too.
type stopping struct {
	dynamosqs.Table
	left  atomic.Int64 // requests until it stops
	backs chan struct{}
}

func newStopping(t dynamosqs.Table, after int) *stopping {
	s := &stopping{Table: t, backs: make(chan struct{})}
	s.left.Store(int64(after))
	return s
}

func (s *stopping) stop()        { s.left.Store(0) }
func (s *stopping) resumes()     { close(s.backs) }
func (s *stopping) isAway() bool { return s.left.Load() < 0 }

func ask[I, O any](ctx context.Context, s *stopping, in I, do func(context.Context, I, ...func(*dynamodb.Options)) (O, error), opts []func(*dynamodb.Options)) (O, error) {
	if s.left.Add(-1) >= 0 {
		return do(ctx, in, opts...)
	}
	select {
	case <-s.backs:
		return do(ctx, in, opts...)
	case <-ctx.Done():
		go func() {
			<-s.backs
			_, _ = do(context.WithoutCancel(ctx), in, opts...)
		}()
		var none O
		return none, ctx.Err()
	}
}

func (s *stopping) GetItem(ctx context.Context, in *dynamodb.GetItemInput, o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return ask(ctx, s, in, s.Table.GetItem, o)
}

func (s *stopping) PutItem(ctx context.Context, in *dynamodb.PutItemInput, o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return ask(ctx, s, in, s.Table.PutItem, o)
}

func (s *stopping) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return ask(ctx, s, in, s.Table.UpdateItem, o)
}

func (s *stopping) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return ask(ctx, s, in, s.Table.DeleteItem, o)
}

func (s *stopping) Query(ctx context.Context, in *dynamodb.QueryInput, o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return ask(ctx, s, in, s.Table.Query, o)
}

// If the table stops responding for ten seconds at any step of a delivery, the delivery is sent once and completed soon
// after the table responds again.
func TestDeliveryCompletesSoonAfterTableStopped(t *testing.T) {
	for n, over := 0, false; !over; n++ {
		synctest.Test(t, func(t *testing.T) {
			o := both()
			open(t, o)
			table := newStopping(o.Table, n)
			o.Table = table
			s, err := dynamosqs.New(o)
			if err != nil {
				t.Fatal(err)
			}
			sent := make(chan struct{}, 10)
			ctx, stop := context.WithCancel(context.Background())
			var all sync.WaitGroup
			defer s.Close()
			defer all.Wait()
			defer stop()
			w := &delivery.Worker{Queue: s, Owner: "one", Poll: 2 * time.Second, Sender: func(string) delivery.Sender {
				return sends(func(*delivery.Delivery) { sent <- struct{}{} })
			}}
			all.Go(func() { w.Run(ctx) })
			synctest.Wait()
			d, _, failed := w.Accept(ctx, request("up"))
			time.Sleep(100 * time.Millisecond)
			if over = !table.isAway(); over {
				table.stop()
			}
			time.Sleep(10 * time.Second)
			table.resumes()
			if failed != nil {
				return
			}
			time.Sleep(5 * time.Second)
			is, err := s.Get(ctx, d.ID)
			if err != nil || is.Status != delivery.Completed || is.Attempts != 1 || len(sent) != 1 {
				t.Errorf("stopped before request %d: %s with %d attempts, sent %d times, %v", n, is.Status, is.Attempts, len(sent), err)
			}
		})
	}
}

// lateClaim makes a claim of a new delivery whose result is unknown: the table stops before it is written. other is
// another store with the table.
func lateClaim(t *testing.T) (s, other *dynamosqs.Store, table *stopping, d delivery.Delivery) {
	t.Helper()
	o := both()
	other = open(t, o)
	table = newStopping(o.Table, 1<<60)
	o.Table = table
	s, err := dynamosqs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if d, _, err = s.Accept(t.Context(), request("up")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sweep(t.Context(), nil); err != nil { // it also corrects the counts, which it will not do again soon
		t.Fatal(err)
	}
	table.left.Store(1) // the claim reads the record, and cannot write it
	if all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "up", Only: []int64{d.Seq}, Lease: time.Minute}); err == nil {
		t.Fatalf("claimed %d", len(all))
	}
	return s, other, table, d
}

// A claim that is stored after its caller has given up is given back by the next sweep. It does not count as an attempt.
func TestLateClaimIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _, table, d := lateClaim(t)
		ctx := t.Context()
		table.resumes()
		synctest.Wait()
		if is, err := s.Get(ctx, d.ID); err != nil || is.Status != delivery.Processing {
			t.Fatalf("the late claim is not stored: %s, %v", is.Status, err)
		}
		if _, err := s.Sweep(ctx, nil); err != nil {
			t.Fatal(err)
		}
		is, err := s.Get(ctx, d.ID)
		if err != nil || is.Status != delivery.Queued || is.Attempts != 0 || is.Starts != 0 {
			t.Errorf("after a sweep it is %s with %d attempts, %d started, %v", is.Status, is.Attempts, is.Starts, err)
		}
		found, err := s.Counts(ctx)
		if err != nil || len(found) != 1 || found[0].Status != delivery.Queued || found[0].N != 1 {
			t.Errorf("counted: %v, %v", found, err)
		}
	})
}

// If another process claims the delivery first, that claim stays.
func TestLateClaimLeavesClaimOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, other, table, d := lateClaim(t)
		ctx := t.Context()
		all, err := other.Claim(ctx, delivery.Ask{Upstream: "up", Only: []int64{d.Seq}, Lease: time.Minute})
		if err != nil || len(all) != 1 {
			t.Fatal(all, err)
		}
		table.resumes()
		synctest.Wait()
		if _, err := s.Sweep(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if lost, err := other.End(ctx, delivery.End{Claim: all[0].Claim(), To: delivery.Completed}); err != nil || len(lost) != 0 {
			t.Errorf("the other process lost its claim: %v, %v", lost, err)
		}
	})
}
