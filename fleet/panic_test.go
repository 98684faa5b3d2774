package fleet

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// panicky is a store whose client panics in the next requests.
type panicky struct {
	Store
	boom atomic.Int64
}

func (s *panicky) Take(ctx context.Context, a *Ask) error {
	if len(a.Claims) > 0 && s.boom.Add(-1) >= 0 {
		time.Sleep(time.Millisecond)
		panic("boom")
	}
	return s.Store.Take(ctx, a)
}

func TestAPanicOfTheStoresClientEndsOneCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}}
		s := &panicky{Store: NewMemory(nil)}
		f, regs := groupOf(t, s, Options{Lease: -1}, l)
		defer func() { _ = f.Close(context.Background()) }()
		time.Sleep(2 * time.Second)
		one := limit.Charge{Registry: regs[0], Cost: 1}
		s.boom.Store(1)
		var went, panics atomic.Int64
		begin := clock.System.Now()
		for range 4 { // one drives, and the others wait for its request
			go func() {
				defer func() {
					if recover() != nil {
						panics.Add(1)
					}
				}()
				if ok, _, _ := goOne(context.Background(), begin+10*time.Second, one); ok {
					went.Add(1)
				}
			}()
		}
		time.Sleep(time.Second)
		if went.Load() != 3 || panics.Load() != 1 {
			t.Errorf("%d went and %d panicked within a second, want 3 and 1", went.Load(), panics.Load())
		}
		s.boom.Store(1)
		func() {
			defer func() { _ = recover() }()
			_, _, _ = goOne(context.Background(), clock.System.Now()+time.Second, one)
		}()
		if n := regs[0].Get(clock.System.Now(), "").Leased().(*lease).waits.Load(); n != 0 {
			t.Errorf("%d are counted as waiting, want none", n)
		}
		begin = clock.System.Now()
		if ok, v, err := goOne(context.Background(), begin+10*time.Second, one); !ok || clock.System.Now()-begin > time.Second {
			t.Errorf("the next call: %v %+v %v after %v", ok, v, err, clock.System.Now()-begin)
		}
	})
}
