package fleet

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Processes with few calls before an outage can use a daily quota together with a rate.
func TestYoungProcessesUseQuotaDuringOutage(t *testing.T) {
	const length = 25 * time.Second
	for _, n := range []int{1, 4} {
		for _, age := range []time.Duration{3 * time.Second, 10 * time.Second, time.Minute} {
			for _, amount := range []int64{100_000, 1_000_000} {
				t.Run(fmt.Sprintf("%d processes, age %v, %d a day", n, age, amount), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						rate := limit.Limit{Name: "b", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}}
						quota := limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Day}
						s := &absent{Store: NewMemory(nil)}
						var all [][]*limit.Registry
						for range n {
							f, regs := groupOf(t, s, Options{}, rate, quota)
							defer func() { _ = f.Close(context.Background()) }()
							all = append(all, regs)
						}
						var served, wanted, total atomic.Int64
						begin := clock.System.Now()
						for i := 0; clock.System.Now() < begin+age+length; i++ {
							away := clock.System.Now() >= begin+age
							s.away.Store(away)
							regs := all[i%n]
							ok, _, _ := goOne(context.Background(), clock.System.Now()+1500*time.Millisecond, limit.Charge{Registry: regs[0], Cost: 1}, limit.Charge{Registry: regs[1], Cost: 1})
							if away {
								wanted.Add(1)
							}
							if ok {
								total.Add(1)
							}
							if ok && away {
								served.Add(1)
							}
							time.Sleep(300 * time.Millisecond)
						}
						s.away.Store(false)
						if t.Logf("%d of %d", served.Load(), wanted.Load()); served.Load()*100 < wanted.Load()*70 || total.Load() > amount {
							t.Errorf("%d of %d calls served during the outage", served.Load(), wanted.Load())
						}
					})
				})
			}
		}
	}
}
