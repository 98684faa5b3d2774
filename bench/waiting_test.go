//go:build unix

package bench

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Callers that all wait for a limit of 10,000/s with a burst of 10, in real time: the used share of the limit, and the CPU time
// of each grant. In the fair rows a hundred users take turns.
func BenchmarkWaiting(b *testing.B) {
	for _, fair := range []bool{false, true} {
		for _, callers := range []int{64, 1000, 10_000, 100_000} {
			name := "weir"
			if fair {
				name = "fair"
			}
			b.Run(fmt.Sprintf("%s/g=%d", name, callers), func(b *testing.B) {
				for b.Loop() {
					used, each := waiting(callers, fair)
					b.ReportMetric(used, "used")
					b.ReportMetric(each, "us/grant")
				}
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// waiting returns the share of the limit that callers use in three seconds, and the CPU time of each grant in microseconds.
func waiting(callers int, fair bool) (used, each float64) {
	const perSecond = 10_000
	policy := weir.Policy{
		Limits:  []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: perSecond, Per: time.Second, Burst: 10}}},
		Breaker: weirShare,
		MaxWait: time.Hour,
	}
	if fair {
		policy.Fair = weir.Fair{By: "user", Longest: callers, PerFlow: callers}
	}
	u := must(weir.New("bench", policy, weir.Options{}))
	ctx, cancel := context.WithCancel(context.Background())
	var granted atomic.Int64
	var all sync.WaitGroup
	for i := range callers {
		call := weir.Call{Keys: map[string]string{"user": strconv.Itoa(i % 100)}}
		all.Go(func() {
			for {
				p, err := u.Acquire(ctx, call)
				if err != nil {
					return
				}
				p.Report(good)
				granted.Add(1)
			}
		})
	}
	time.Sleep(time.Duration(callers) * 50 * time.Microsecond) // until all wait
	begin, spent, before := time.Now(), processorTime(), granted.Load()
	time.Sleep(3 * time.Second)
	took, n := time.Since(begin), float64(granted.Load()-before)
	used, each = n/perSecond/took.Seconds(), float64(processorTime()-spent)/n/1000
	cancel()
	all.Wait()
	return used, each
}

func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
