package weir_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Calls of several upstreams with one LimitSet, including waiting ones, stay within one limit in every window, and
// use it completely.
func TestUpstreamsOfOneLimitSetStayWithinOneLimit(t *testing.T) {
	const rate, burst, calls = 10, 7, 60
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			set := new(weir.LimitSet)
			policy := weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: rate, Per: time.Second, Burst: burst}}}, MaxWait: time.Hour}
			policy.Breaker.Off = true
			var upstreams []*weir.Upstream
			for range 3 {
				u, err := weir.New("u", policy, weir.Options{Limits: set})
				if err != nil {
					t.Fatal(err)
				}
				upstreams = append(upstreams, u)
			}
			other, err := weir.New("other", policy, weir.Options{Limits: set})
			if err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			var mu sync.Mutex
			var went []time.Duration
			var wg sync.WaitGroup
			for i := range calls {
				u, after := upstreams[i%3], time.Duration(rng.IntN(2000))*time.Millisecond
				wg.Go(func() {
					time.Sleep(after)
					if _, err := weir.Do(context.Background(), u, weir.Call{}, func(context.Context) (int, error) {
						mu.Lock()
						defer mu.Unlock()
						went = append(went, time.Since(began))
						return 0, nil
					}); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			slices.Sort(went)
			for i := range went {
				for j := i; j < len(went); j++ {
					if window := went[j] - went[i]; float64(j-i+1) > burst+rate*window.Seconds()+1e-6 {
						t.Fatalf("seed %d: %d calls in %v", seed, j-i+1, window)
					}
				}
			}
			if took := time.Since(began); took > 2*time.Second+(calls-burst)*time.Second/rate {
				t.Errorf("seed %d: took %v", seed, took)
			}
			var p weir.Permit
			if d := other.Try(weir.Call{Cost: map[string]int64{"requests": burst}}, &p); !d.Allowed {
				t.Errorf("an upstream of another name is charged, too: %v", d)
			}
		})
	}
}
