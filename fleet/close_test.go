package fleet

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// TestCloseInTime checks that Close ends with its context, even if the store does not respond.
func TestCloseInTime(t *testing.T) {
	for range 8 {
		synctest.Test(t, func(t *testing.T) {
			l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
			s := hung{&faulty{Store: NewMemory(nil)}}
			f, regs := groupOf(t, s, Options{}, l)
			drainNow(limit.Charge{Registry: regs[0], Key: "", Cost: 1})
			s.down.Store(true)
			stop := make(chan struct{})
			for range 4 {
				go func() {
					for {
						select {
						case <-stop:
							return
						default:
						}
						_, _, _ = goOne(context.Background(), clock.System.Now()+2*time.Second, limit.Charge{Registry: regs[0], Key: "", Cost: 1})
						time.Sleep(time.Millisecond)
					}
				}()
			}
			time.Sleep(60 * time.Second)
			ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
			begin := clock.System.Now()
			err := f.Close(ctx)
			worst := clock.System.Now() - begin
			cancel()
			close(stop)
			if worst > 300*time.Millisecond {
				t.Errorf("Close took %v of the 100ms it had: %v", worst, errors.Is(err, context.DeadlineExceeded))
			}
			time.Sleep(20 * time.Second)
		})
	}
}
