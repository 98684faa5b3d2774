package fleet

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// distant is a store in which half of the responses take long.
type distant struct {
	Store
	most time.Duration
	mu   *sync.Mutex
	rng  *rand.Rand
}

func (s distant) Take(ctx context.Context, a *Ask) error {
	s.mu.Lock()
	way := time.Duration(s.rng.Int64N(int64(time.Millisecond)))
	if s.rng.IntN(2) == 0 {
		way = time.Duration(s.rng.Int64N(int64(s.most)))
	}
	s.mu.Unlock()
	err := s.Store.Take(ctx, a)
	time.Sleep(way)
	return err
}

// Processes with low demand hold blocks while the store's bucket is full. Then every process requests all units
// at nearly the same instant. The sum of leased units, late units and the store's units could exceed the burst.
func TestASurgeAfterATrickleStaysWithinTheLimit(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling} {
		for _, o := range []Options{{}, {Lease: -1}} {
			for _, late := range []time.Duration{time.Millisecond, 9 * time.Millisecond} {
				t.Run(fmt.Sprintf("%v leased %v answers within %v", shape, o.Lease == 0, late), func(t *testing.T) {
					for seed := range uint64(3) {
						synctest.Test(t, func(t *testing.T) {
							l := limit.Limit{Name: "l", Shape: shape, Rate: bucket.Rate{Amount: 100, Per: time.Second}}
							if worst, where := surges(t, l, o, late, seed).over(l); worst > 0 {
								t.Errorf("seed %d: %d over: %s", seed, worst, where)
							}
						})
					}
				})
			}
		}
	}
}

// surges makes five processes take a little for a while and then all that they can, many times.
func surges(t *testing.T, l limit.Limit, o Options, late time.Duration, seed uint64) *tally {
	rng := rand.New(rand.NewPCG(seed, 0))
	store := distant{NewMemory(nil), late, new(sync.Mutex), rand.New(rand.NewPCG(seed, 1))}
	_, regs := fleetOf(t, 5, store, l, o)
	rec := &tally{}
	take := func(r *limit.Registry, patience time.Duration) bool {
		ok, _, err := goOne(context.Background(), clock.System.Now()+patience, limit.Charge{Registry: r, Key: "", Cost: 1})
		if err != nil {
			t.Error(err)
		}
		if ok {
			rec.add(clock.System.Now(), 1)
		}
		return ok
	}
	for range 15 {
		var wg sync.WaitGroup
		trickle, every := time.Second+time.Duration(rng.Int64N(int64(time.Second))), time.Duration(50+rng.IntN(30))*time.Millisecond
		for _, r := range regs {
			wg.Go(func() {
				for range trickle / every {
					take(r, 200*time.Millisecond)
					time.Sleep(every)
				}
			})
		}
		wg.Wait()
		time.Sleep(time.Duration(rng.Int64N(int64(200 * time.Millisecond))))
		end := clock.System.Now() + 200*time.Millisecond
		for _, r := range regs {
			begin := time.Duration(rng.Int64N(int64(100 * time.Millisecond)))
			for range 40 {
				wg.Go(func() {
					time.Sleep(begin)
					for clock.System.Now() < end && take(r, end-clock.System.Now()) {
					}
				})
			}
		}
		wg.Wait()
	}
	return rec
}

// A store expects that granted units are used soon. If the response takes longer, it has granted as many units
// again.
func TestWhatIsGrantedTooLateIsNotUsedOnTopOfTheBurst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}
		memory := NewMemory(nil)
		_, far := fleetOf(t, 1, slow{memory, 120 * time.Millisecond}, l, Options{Lease: -1, Timeout: time.Second})
		_, near := fleetOf(t, 1, memory, l, Options{Lease: -1})
		rec := &tally{}
		var wg sync.WaitGroup
		take := func(r *limit.Registry, n int64) bool {
			ok, _, _ := goOne(context.Background(), clock.System.Now()+130*time.Millisecond, limit.Charge{Registry: r, Key: "", Cost: n})
			if ok {
				rec.add(clock.System.Now(), n)
			}
			return ok
		}
		wg.Go(func() { take(far[0], 40) }) // charged after 60 ms, arrives after 120
		time.Sleep(119 * time.Millisecond)
		for take(near[0], 1) && len(rec.at) < 120 {
		}
		wg.Wait()
		if worst, where := rec.over(l); worst > 0 {
			t.Errorf("%d over: %s", worst, where)
		}
		if len(rec.at) < 60 {
			t.Errorf("only %d went", len(rec.at))
		}
	})
}
