package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An absent store fails while it is away.
type absent struct {
	Store
	away atomic.Bool
}

func (s *absent) Take(ctx context.Context, a *Ask) error {
	if s.away.Load() {
		return errors.New("away")
	}
	return s.Store.Take(ctx, a)
}

func (s *absent) Beat(ctx context.Context, b *Beat) (Standing, error) {
	if s.away.Load() {
		return Standing{}, errors.New("away")
	}
	return s.Store.Beat(ctx, b)
}

// Many keys with one call in ten seconds each, which any of four processes makes, have a rolling limit of 10 a minute. While the
// store is away calls are served from reserves, and no key exceeds its limit.
func TestManyKeysAreServedDuringOutage(t *testing.T) {
	keys, procs := campaign.Of(1000, 10_000), 4
	for _, age := range []time.Duration{20 * time.Second, 90 * time.Second} {
		t.Run(fmt.Sprint("age ", age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &absent{Store: NewMemory(nil)}
				l := limit.Limit{Name: "l", Shape: limit.Rolling, Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Minute}}
				_, regs := fleetOf(t, procs, s, l, Options{})
				begin := clock.System.Now()
				end := age + 90*time.Second
				rng := rand.New(rand.NewPCG(1, 2))
				var mu sync.Mutex
				went := make([][]time.Duration, keys)
				served, wanted := 0, 0
				var calls sync.WaitGroup
				for k := range keys {
					for at := time.Duration(rng.Int64N(int64(10 * time.Second))); at < end; at += 10 * time.Second {
						reg := regs[rng.IntN(procs)]
						calls.Go(func() {
							time.Sleep(at)
							now := clock.System.Now()
							ok, _, _ := goOne(context.Background(), now+100*time.Millisecond, limit.Charge{Registry: reg, Key: fmt.Sprint(k), Cost: 1})
							mu.Lock()
							defer mu.Unlock()
							during := at >= age && at < age+30*time.Second
							if during {
								wanted++
							}
							if ok {
								went[k] = append(went[k], clock.System.Now()-begin)
							}
							if ok && during {
								served++
							}
						})
					}
				}
				time.Sleep(age)
				s.away.Store(true)
				time.Sleep(30 * time.Second)
				s.away.Store(false)
				calls.Wait()
				for k, all := range went {
					slices.Sort(all)
					for i := 10; i < len(all); i++ {
						if all[i]-all[i-10] < time.Minute {
							t.Fatalf("key %d: 11 units in %v", k, all[i]-all[i-10])
						}
					}
				}
				if t.Logf("%d of %d calls served", served, wanted); served*100 < wanted*15 {
					t.Errorf("%d of %d calls served, want 15%%", served, wanted)
				}
			})
		})
	}
}
