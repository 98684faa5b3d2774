package limit

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Under steady demand nearly the whole amount of a rolling limit is used in every window, at any size: by calls that
// come at their predicted instant, evenly or in bursts.
func TestARollingLimitIsUsed(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	for _, amount := range []int64{5, 1000, 1023, 1024, 5000, 100_000, 2_000_000} {
		for _, how := range []string{"greedy", "even", "random", "dear", "bursts"} {
			if how == "random" && amount < 1000 {
				continue // only with many calls is it certain that a tenth more comes in every minute
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

// rollingUse returns the share of a limit per minute that is used in some minutes.
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
	each := time.Minute / time.Duration(amount/n+amount/n/10+1) // demand is a tenth above the limit
	now := time.Duration(0)
	for i := 0; now < minutes*time.Minute; i++ {
		_, wait, ok := m.Take(now, n)
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
	return float64(got) / float64(amount) / minutes
}

// BenchmarkRolling measures a decision by a rolling limit that is half used, always used up, or refuses. A minute
// passes once per amount of calls, so that entries leave the window as fast as they come.
func BenchmarkRolling(b *testing.B) {
	for _, amount := range []int64{60, 1000, 5000, 2_000_000} {
		for how, part := range map[string]time.Duration{"half": 2, "full": 1, "no": 0} {
			b.Run(fmt.Sprintf("%d/%s", amount, how), func(b *testing.B) {
				m, err := New(0, rollingLimit(amount, time.Minute))
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
			m, err := New(clock.System.Now(), rollingLimit(amount, time.Minute))
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
