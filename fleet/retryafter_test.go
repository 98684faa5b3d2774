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

// TestRetryAfterAnOutage checks the wait in a refusal when the store is back and does not know yet that this
// process has stopped using its part.
func TestRetryAfterAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
		s := &faulty{Store: NewMemory(nil)}
		_, regs := fleetOf(t, 2, farAway{s, 20 * time.Millisecond}, l, Options{})
		c := limit.Charge{Registry: regs[0], Key: "", Cost: 40}
		for range 200 {
			drainNow(c)
			goOne(context.Background(), clock.System.Now()+time.Second, c)
			time.Sleep(10 * time.Millisecond)
		}
		s.down.Store(true)
		time.Sleep(10 * time.Second)
		s.down.Store(false)
		back := clock.System.Now()
		for clock.System.Now() < back+3*time.Second {
			begin := clock.System.Now()
			ok, v, _ := goOne(context.Background(), begin+2*time.Second, c)
			now := clock.System.Now()
			if !ok && v.Wait > 10*time.Second {
				t.Errorf("%v after the store was back: refused after %v of a patience of 2s, come again in %v", begin-back, now-begin, v.Wait)
			}
			if ok {
				t.Logf("%v after the store was back: one went", now-back)
			}
			time.Sleep(20 * time.Millisecond)
		}
	})
}
