package line

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
)

type wants int64

func (wants) Ask(time.Duration, time.Duration) Step { return Step{Kind: Wait, For: time.Hour} }

// The sum of the demand of calls before a call is exact for few calls, and extrapolated from the first ones for many.
func TestWhatThoseBeforeWant(t *testing.T) {
	for _, n := range []int{0, 10, 3000} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := ByPriority(clock.System, 10_000)
				ctx, cancel := context.WithCancel(context.Background())
				now := clock.System.Now()
				var wg sync.WaitGroup
				var middle uint64
				var all [Priorities]int64
				for i := range n {
					c := &Call{Asker: wants(i%7 + 1), Priority: i % 2, Until: now + time.Hour, Came: uint64(i + 1)}
					if all[c.Priority] += int64(i%7 + 1); i < n/2 {
						middle = c.Came + 1
					}
					wg.Go(func() { _, _ = l.Join(ctx, now, c) })
					synctest.Wait()
				}
				for _, c := range []struct {
					Call
					want int64
				}{
					{Call{Came: 1 << 40}, all[0]},
					{Call{Came: middle}, all[0] / 2},
					{Call{Came: 1 << 40, Priority: 1}, all[0] + all[1]},
					{Call{Came: middle, Priority: 1}, all[0] + all[1]/2},
					{Call{Came: 1 << 40, Priority: 2}, all[0] + all[1]},
				} {
					got := l.Before(&c.Call, func(a Asker) int64 { return int64(a.(wants)) })
					if off := got - c.want; off < -4-c.want/20 || off > 4+c.want/20 {
						t.Errorf("priority %d, %d: %d, want %d", c.Priority, c.Came, got, c.want)
					}
				}
				cancel()
				wg.Wait()
			})
		})
	}
}
