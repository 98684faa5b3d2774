package limit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Under steady demand nearly the whole amount of a rolling limit goes in every window,
// however large it is: by calls that come when they were told to, evenly, in bursts, or
// that book their turns.
func TestARollingLimitIsUsed(t *testing.T) {
	for _, amount := range []int64{5, 1000, 1023, 1024, 5000, 100_000, 2_000_000} {
		for _, how := range []string{"greedy", "even", "random", "dear", "bursts", "booked"} {
			if how == "random" && amount < 1000 {
				continue // that a tenth more comes in every minute is certain of many calls only
			}
			t.Run(fmt.Sprintf("%d/%s", amount, how), func(t *testing.T) {
				least := 0.999
				if amount < 1024 {
					least = 1
				}
				if use := rollingUse(t, amount, how); use < least {
					t.Errorf("use %.5f, want %.3f", use, least)
				} else {
					t.Logf("use %.5f", use)
				}
			})
		}
	}
}

// rollingUse is the share of a limit by the minute that goes in some minutes.
func rollingUse(t *testing.T, amount int64, how string) float64 {
	m, err := New(0, Limit{Name: "l", Shape: Rolling, Rate: bucket.Rate{Amount: amount, Per: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	const minutes = 5
	n, got := int64(1), int64(0)
	if how == "dear" {
		n = max(1, amount/700)
	}
	each := time.Minute / time.Duration(amount/n+amount/n/10+1) // a tenth more is wanted than there is
	now := time.Duration(0)
	for i := 0; now < minutes*time.Minute; i++ {
		if how == "booked" { // a thousand wait, and nobody else comes until some have gone
			if _, wait, ok := m.Take(now, n, time.Hour); ok {
				got += n
			} else {
				now += wait
			}
			continue
		}
		_, wait, ok := m.Take(now, n, 0)
		if ok {
			got += n
		}
		switch {
		case how == "bursts" && i%1000 < 999 && ok:
		case how == "bursts" && ok:
			now += each * 1000
		case how == "random":
			now += time.Duration(rng.ExpFloat64() * float64(each))
		case how == "even" || how == "dear":
			now += max(each, wait)
		case !ok:
			now += wait
		}
	}
	return float64(got-m.shaped().(*roll).log.Ahead(minutes*time.Minute-1)) / float64(amount) / minutes
}

// A decision by a rolling limit, when half of it is used, when it is always used up, and
// when the answer is no. A minute passes once for each amount of calls, so that entries
// leave the window as they come in.
func BenchmarkRolling(b *testing.B) {
	for _, amount := range []int64{60, 1000, 5000, 2_000_000} {
		for how, part := range map[string]time.Duration{"half": 2, "full": 1, "no": 0} {
			b.Run(fmt.Sprintf("%d/%s", amount, how), func(b *testing.B) {
				m, err := New(0, rolling(amount, time.Minute))
				if err != nil {
					b.Fatal(err)
				}
				step, now := part*time.Minute/time.Duration(amount), time.Duration(0)
				for range 3 * amount {
					m.Try(now, 1)
					now += step
				}
				b.ReportAllocs()
				for b.Loop() {
					m.Try(now, 1)
					now += step
				}
			})
		}
	}
}

func BenchmarkRolling64(b *testing.B) {
	for _, amount := range []int64{1000, 1 << 39} {
		b.Run(fmt.Sprint(amount), func(b *testing.B) {
			m, err := New(clock.System.Now(), rolling(amount, time.Minute))
			if err != nil {
				b.Fatal(err)
			}
			b.SetParallelism(32)
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					m.Try(clock.System.Now(), 1)
				}
			})
		})
	}
}

// A fleet uses nearly all of a rolling limit, too, and no window ever has more, whether
// its processes lease or ask for each call.
func TestARollingLimitOfAFleetIsUsed(t *testing.T) {
	for _, c := range []struct {
		amount, cost int64
		per          time.Duration
	}{{100, 1, time.Second}, {5, 1, time.Minute}, {1000, 1, time.Minute}, {5000, 1, time.Minute}, {2_000_000, 3000, time.Minute}} {
		for _, lease := range []time.Duration{0, -1} {
			t.Run(fmt.Sprintf("%d/%v/lease %v", c.amount, c.per, lease), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					l := Limit{Name: "l", Unit: "tokens", Shape: Rolling, Rate: bucket.Rate{Amount: c.amount, Per: c.per}}
					_, regs := fleetOf(t, 4, nearby(), l, FleetOptions{Lease: lease})
					calls, most := int64(campaign.Of(5_000, 15_000)), int64(campaign.Of(20, 100))
					windows := time.Duration(max(3, min(most, calls*c.cost/c.amount)))
					all := wanting(t, regs, c.cost, windows*c.per)
					worst, used := overUsed(l, all, 0)
					if worst > 0 {
						t.Errorf("%d over", worst)
					}
					if share := float64(used) / float64(c.amount) / float64(windows); share < 0.98 {
						t.Errorf("%.4f used", share)
					} else {
						t.Logf("%.4f used", share)
					}
				})
			})
		}
	}
}

// wanting has callers of each registry want more than there is, each call so much, for d.
func wanting(t *testing.T, regs []*Registry, cost int64, d time.Duration) (all []use) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	end := clock.System.Now() + d
	for _, r := range regs {
		for range 8 {
			wg.Go(func() {
				for clock.System.Now() < end {
					_, ok, err := take(context.Background(), r, cost, end)
					if err != nil {
						t.Error(err)
					}
					if now := clock.System.Now(); ok && now < end {
						mu.Lock()
						all = append(all, use{now, cost})
						mu.Unlock()
					} else {
						time.Sleep(end - now) // there is no more before that
					}
				}
			})
		}
	}
	wg.Wait()
	return all
}
