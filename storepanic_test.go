package weir_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// panicky is a store whose client panics in every second request, n times.
type panicky struct {
	fleet.Store
	n, boom atomic.Int64
}

func (s *panicky) Take(ctx context.Context, a *fleet.Ask) error {
	if len(a.Claims) > 0 && s.n.Add(1)%2 == 0 && s.boom.Add(-1) >= 0 {
		panic("boom")
	}
	return s.Store.Take(ctx, a)
}

// If the store panics in a call's request, the next call gets its place among the simultaneous requests.
func TestPanicsOfAStoresClientTakeNoPlaceInLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &panicky{Store: fleet.NewMemory(nil)}
		p := with(steady(rate("all", 10, sec, 2)), func(p *weir.Policy) {
			p.Fair.By = "user"
			p.MaxWait = 20 * sec
		})
		u := join(t, s, p, fleet.Options{Lease: -1})
		time.Sleep(2 * sec)
		var panics, went atomic.Int64
		call := func(i int) {
			defer func() {
				if recover() != nil {
					panics.Add(1)
				}
			}()
			x, err := u.Acquire(background, weir.Call{Keys: map[string]string{"user": fmt.Sprint(i % 5)}})
			if err == nil {
				x.Report(outcome.Outcome{Class: outcome.OK})
				went.Add(1)
			}
		}
		s.boom.Store(25)
		var wg sync.WaitGroup
		for i := range 60 {
			wg.Go(func() { call(i) })
		}
		wg.Wait()
		if s.boom.Load() > 0 || panics.Load() == 0 {
			t.Fatalf("%d calls panicked, and the store's client would %d times more: want 25 in all, which is more than may ask at once", panics.Load(), s.boom.Load())
		}
		went.Store(0)
		for i := range 20 {
			wg.Go(func() { call(i) })
		}
		wg.Wait()
		if went.Load() != 20 {
			t.Errorf("%d of 20 calls went after the panics, want all", went.Load())
		}
	})
}

// forsaken is a store that answers the first request after its caller has left, and panics in the next one.
type forsaken struct {
	fleet.Store
	n atomic.Int64
}

func (s *forsaken) Take(ctx context.Context, a *fleet.Ask) error {
	if len(a.Claims) > 0 {
		switch s.n.Add(1) {
		case 1:
			<-ctx.Done()
			return ctx.Err()
		case 2:
			panic("boom")
		}
	}
	return s.Store.Take(ctx, a)
}

// The request of a call that leaves is repeated on a goroutine of the fleet. A panic there is an error of the store,
// and does not end the process.
func TestAPanicOnNobodysGoroutineIsAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var heard atomic.Int64
		u := join(t, &forsaken{Store: fleet.NewMemory(nil)}, steady(rate("all", 10, sec, 2)), fleet.Options{Lease: -1, Events: fleet.Events{Called: func(c fleet.StoreCall) {
			if c.Err != nil && strings.Contains(c.Err.Error(), "panicked: boom") {
				heard.Add(1)
			}
		}}})
		time.Sleep(2 * sec)
		ctx, leave := context.WithCancel(background)
		time.AfterFunc(ms, leave)
		if _, err := u.Acquire(ctx, weir.Call{}); err == nil {
			t.Error("who has left was let through")
		}
		time.Sleep(10 * sec)
		if heard.Load() != 1 {
			t.Errorf("%d panics were told, want 1", heard.Load())
		}
		if _, err := u.Acquire(background, weir.Call{}); err != nil {
			t.Errorf("after the panic: %v", err)
		}
	})
}
