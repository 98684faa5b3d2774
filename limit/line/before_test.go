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

// beforeRules record whether calls went before others when they began to wait.
type beforeRules struct {
	rules
	before []bool
}

func (r *beforeRules) Wait(_, _ time.Duration, before bool) time.Duration {
	r.before = append(r.before, before)
	return 10 * time.Millisecond
}

// A call goes before others if calls of lower priority wait, or began to wait within the last second.
func TestCallGoesBeforeLowerPriorityOfTheLastSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := new(beforeRules)
		l := New(clock.System, r, [Priorities]int{})
		for _, c := range []struct {
			priority int
			after    time.Duration
			want     bool
		}{{1, 0, false}, {2, 0, false}, {1, 500 * time.Millisecond, true}, {2, 0, false}, {0, 900 * time.Millisecond, true}, {0, 1100 * time.Millisecond, false}} {
			time.Sleep(c.after)
			now := clock.System.Now()
			_, _ = l.Join(t.Context(), now, &Call{Asker: wants(1), Priority: c.priority, Until: now + time.Hour})
			if got := r.before[len(r.before)-1]; got != c.want {
				t.Errorf("%d: priority %d, %v later, goes before others: %v", len(r.before), c.priority, c.after, got)
			}
		}
	})
}
