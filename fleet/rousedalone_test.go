package fleet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// slowly calls story with a process that uses its part because responses of the store are too late.
func slowly(t *testing.T, l limit.Limit, story func(r *limit.Registry)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f, regs := groupOf(t, farAway{NewMemory(nil), 600 * time.Millisecond}, Options{}, l)
		defer func() { _ = f.Close(context.Background()) }()
		for range 300 {
			_, _, _ = goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: regs[0], Cost: 1})
			time.Sleep(100 * time.Millisecond)
		}
		story(regs[0])
	})
}

// waits returns how long a call of the cost waits, at most a minute.
func waits(t *testing.T, r *limit.Registry, cost int64) time.Duration {
	t.Helper()
	begin := clock.System.Now()
	if ok, v, err := goOne(context.Background(), begin+time.Minute, limit.Charge{Registry: r, Cost: cost}); !ok {
		t.Errorf("cost %d: %+v %v", cost, v, err)
	}
	return clock.System.Now() - begin
}

// If units become available earlier than predicted, waiting calls get them, even while the store is too slow to
// be asked.
func TestASlowStoreDelaysNoWaitThatEndsSooner(t *testing.T) {
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
	slowly(t, l, func(r *limit.Registry) {
		now, m := clock.System.Now(), r.Get(clock.System.Now(), "")
		m.Pause(now, now+30*time.Second)
		time.AfterFunc(time.Second, func() { m.Resume(clock.System.Now()) })
		if took := waits(t, r, 1); took > 1100*time.Millisecond {
			t.Errorf("a pause was lifted after 1s, and a call went after %v", took)
		}
	})
	l.Rate = bucket.Rate{Amount: 60, Per: time.Minute, Burst: 30}
	slowly(t, l, func(r *limit.Registry) {
		time.Sleep(20 * time.Second)
		var p limit.Charges
		p.Add(limit.Charge{Registry: r, Cost: 12})
		now := clock.System.Now()
		if v := p.Take(now); !v.OK {
			t.Fatalf("the process has no 12 units to begin with: %+v", v)
		}
		for { // until no units remain
			if ok, _, _ := goOne(context.Background(), clock.System.Now(), limit.Charge{Registry: r, Cost: 1}); !ok {
				break
			}
		}
		time.AfterFunc(time.Second, func() { p.Drop(clock.System.Now()) })
		if took := waits(t, r, 10); took > 1100*time.Millisecond {
			t.Errorf("12 units came back after 1s, and a call that needs 10 went after %v", took)
		}
		time.AfterFunc(time.Second, func() {
			more := l
			more.Amount, more.Burst = 6000, 3000
			if err := r.Set(clock.System.Now(), more); err != nil {
				t.Error(err)
			}
		})
		if took := waits(t, r, 12); took > 2*time.Second {
			t.Errorf("the limit was raised to a hundred times as much after 1s, and a call that needs 12 went after %v", took)
		}
	})
}
