package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// BenchmarkTake measures single decisions, without leases. All callers use one key, or each claim of each caller
// has its own key.
func BenchmarkTake(b *testing.B) {
	srv := servers.Redis(b)
	s := open(b, srv.URL())
	for _, claims := range []int{1, 3} {
		for _, callers := range []int{1, 64} {
			name := fmt.Sprintf("claims=%d/callers=%d/keys=", claims, callers)
			b.Run(name+"one", func(b *testing.B) {
				benchTake(b, startFull(s), claims, callers, func(int, int) string { return "hot" })
			})
			b.Run(name+"own", func(b *testing.B) {
				benchTake(b, startFull(s), claims, callers, func(i, k int) string { return fmt.Sprint(i, " ", k) })
			})
		}
	}
}

func benchTake(b *testing.B, f full, claims, callers int, key func(caller, claim int) string) {
	var ids atomic.Uint64
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	asks := make([]*fleet.Ask, callers)
	ctx := soon{context.Background()}
	for i := range asks {
		a := &fleet.Ask{Group: "bench", Lane: uint64(i), Copies: 1}
		for k := range claims {
			a.Claims = append(a.Claims, fleet.Claim{Key: key(i, k), Cost: 1, Rule: &fleet.Rule{Name: fmt.Sprint("l", k), Meter: bucket.MeterOf(bucket.Rate{Amount: 1 << 20, Per: time.Second, Burst: 1 << 24})}})
		}
		a.ID = ids.Add(1)
		if err := f.Take(ctx, a); err != nil {
			b.Fatal(err)
		}
		asks[i] = a
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, a := range asks {
		wg.Go(func() {
			for left.Add(-1) >= 0 {
				a.ID = ids.Add(1)
				if err := f.Store.Take(ctx, a); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
}
