package fleet

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// An absent store fails during an outage.
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

// Many keys with one call in ten seconds each, from any of four processes, have a limit of 10 per minute.
// During an outage, calls are served from reserves and parts. No key exceeds its limit.
func TestManyKeysAreServedDuringOutage(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	keys, procs := campaign.Of(1000, 10_000), 4
	for _, c := range []struct {
		shape limit.Shape
		age   time.Duration
		want  int // percent
	}{{limit.Rolling, 20 * time.Second, 15}, {limit.Rolling, 90 * time.Second, 15}, {limit.Bucket, 20 * time.Second, 15}, {limit.Bucket, 90 * time.Second, 15}} {
		age := c.age
		t.Run(fmt.Sprint(c.shape, " age ", age), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &absent{Store: NewMemory(nil)}
				l := limit.Limit{Name: "l", Shape: c.shape, Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}}
				if c.shape == limit.Rolling {
					l.Rate.Burst = 0
				}
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
					if over, where := (&tally{at: all}).over(l); over > 0 {
						t.Fatalf("key %d: over by %d: %s", k, over, where)
					}
				}
				if t.Logf("%d of %d calls served", served, wanted); served*100 < wanted*c.want {
					t.Errorf("%d of %d calls served, want %d%%", served, wanted, c.want)
				}
			})
		})
	}
}
