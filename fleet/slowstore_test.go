package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Without leases, a store that responds in 15 ms, which is longer than the guard, counts as slow and not as
// unavailable. Almost all of the limit is used, and it is never exceeded.
func TestWithoutLeasesALateStoreIsNotAway(t *testing.T) {
	for _, n := range []int{1, 4} {
		t.Run(fmt.Sprintf("%d processes", n), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				away := 0
				l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
				o := Options{Lease: -1, Events: Events{Fallback: func(e FallbackEvent) {
					if e.Away {
						away++
					}
				}}}
				_, regs := fleetOf(t, n, farAway{NewMemory(nil), 15 * time.Millisecond}, l, o)
				begin := clock.System.Now()
				all := insisting(t, regs, 25*time.Second)
				worst, used := overUsed(l, all, begin+5*time.Second)
				if worst > 0 || used < 1960 || away > 0 {
					t.Errorf("%d over, %d of 2000 used, %d fallbacks", worst, used, away)
				}
			})
		})
	}
}

// A limit with a burst of one call loses little between the store and the process, if responses take no longer
// than the interval of its calls.
func TestABurstOfOneIsUsed(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, rtt := range []time.Duration{200 * time.Microsecond, time.Millisecond, 5 * time.Millisecond} {
		for _, n := range []int{1, 8} {
			t.Run(fmt.Sprintf("%v, %d processes", rtt, n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 1}}
					_, regs := fleetOf(t, n, farAway{NewMemory(nil), rtt}, l, Options{})
					begin := clock.System.Now()
					all := insisting(t, regs, 25*time.Second)
					_, used := overUsed(l, all, begin+5*time.Second)
					if used < 1960 {
						t.Errorf("%d of 2000 used", used)
					}
					for i := range all[1:] { // a store counts microseconds
						if d := all[i+1].at - all[i].at; d < 10*time.Millisecond-2*time.Microsecond {
							t.Fatalf("two went within %v", d)
						}
					}
				})
			})
		}
	}
}

// insisting makes callers of each registry request more than the limit for d, ignoring refusals.
func insisting(t *testing.T, regs []*limit.Registry, d time.Duration) (all []use) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := clock.System.Now() + d
	for _, r := range regs {
		for range 8 {
			wg.Go(func() {
				for clock.System.Now() < end {
					_, ok, err := take(context.Background(), r, 1, min(end, clock.System.Now()+time.Second))
					if err != nil {
						t.Error(err)
					}
					if now := clock.System.Now(); ok && now < end {
						mu.Lock()
						all = append(all, use{now, 1})
						mu.Unlock()
					} else {
						time.Sleep(20 * time.Millisecond)
					}
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(all, func(a, b use) int { return int(a.at - b.at) })
	return all
}

// farAway is a store with a fixed response time, half of it on the way to the store.
type farAway struct {
	Store
	rtt time.Duration
}

func (s farAway) Take(ctx context.Context, a *Ask) error {
	time.Sleep(s.rtt / 2)
	err := s.Store.Take(ctx, a)
	time.Sleep(s.rtt - s.rtt/2)
	return err
}

func (s farAway) Beat(ctx context.Context, b *Beat) (Standing, error) {
	time.Sleep(s.rtt / 2)
	a, err := s.Store.Beat(ctx, b)
	time.Sleep(s.rtt - s.rtt/2)
	return a, err
}
