package weir_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/outcome"
)

// panicky is a store whose client panics in every second ask, so many times.
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

// A call whose store panics in its turn leaves the place of those who ask the store at once to the next.
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
		if panics.Load() != 25 {
			t.Fatalf("%d calls panicked, want 25: more than may ask at once", panics.Load())
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
