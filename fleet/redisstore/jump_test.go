package redisstore_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// An outsider is a store outside the bubble of a test: the bubble's time stops until the store has answered. Before
// each call it sets the clock of its server.
type outsider struct {
	fleet.Store
	now   func() time.Time
	clock *atomic.Int64
	work  chan func()
	done  chan chan struct{}
}

func outside(t *testing.T, s fleet.Store, clock *atomic.Int64) *outsider {
	o := &outsider{Store: s, clock: clock, work: make(chan func()), done: make(chan chan struct{}, 64)}
	for range cap(o.done) {
		o.done <- make(chan struct{}, 1)
	}
	go func() {
		for f := range o.work {
			f()
		}
	}()
	t.Cleanup(func() { close(o.work) })
	return o
}

func (o *outsider) call(do func(ctx context.Context)) {
	now := o.now().UnixMicro()
	done := <-o.done
	o.work <- func() {
		o.clock.Store(now)
		do(context.Background())
		done <- struct{}{}
	}
	<-done
	o.done <- done
}

func (o *outsider) Take(_ context.Context, a *fleet.Ask) (err error) {
	o.call(func(ctx context.Context) { err = o.Store.Take(ctx, a) })
	return err
}

func (o *outsider) Beat(_ context.Context, b *fleet.Beat) (s fleet.Standing, err error) {
	o.call(func(ctx context.Context) { s, err = o.Store.Beat(ctx, b) })
	return s, err
}

func (o *outsider) Close() error { return nil }

// The result of TIME jumps when the clock of the server's machine is set, or when another server takes over.
func TestTheServersClockJumps(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	srv := servers.Redis(t)
	s, clock := open(t, srv.URL()), new(atomic.Int64)
	redisstore.Drive(s, clock)
	o := outside(t, s, clock)
	storetest.TestJumps(t, 10*time.Second, func(t *testing.T, now func() time.Time) fleet.Store {
		srv.FlushAll()
		o.now = now
		o.call(func(ctx context.Context) {
			if err := s.Init(ctx, "up"); err != nil {
				t.Error(err)
			}
		})
		return o
	})
}
