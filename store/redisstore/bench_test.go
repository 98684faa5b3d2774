package redisstore_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/internal/servers"
	"github.com/seed1158cd35/weir/limit"
)

func BenchmarkTake(b *testing.B) {
	s := open(b, servers.Redis(b).URL())
	if err := s.Init(b.Context(), "bench"); err != nil {
		b.Fatal(err)
	}
	for _, claims := range []int{1, 3} {
		for _, callers := range []int{1, 64} {
			b.Run(fmt.Sprintf("claims=%d/callers=%d", claims, callers), func(b *testing.B) {
				benchTake(b, s, claims, callers, func(int, int) string { return "hot" })
			})
		}
	}
}

func benchTake(b *testing.B, s limit.Store, claims, callers int, key func(caller, claim int) string) {
	var ids atomic.Uint64
	var wg sync.WaitGroup
	var left atomic.Int64
	left.Store(int64(b.N))
	asks := make([]*limit.Ask, callers)
	ctx := context.Background()
	for i := range asks {
		a := &limit.Ask{Group: "bench", Lane: uint64(i), Copies: 1}
		for k := range claims {
			a.Claims = append(a.Claims, limit.Claim{Key: key(i, k), Cost: 1, Rule: &limit.Rule{Name: fmt.Sprint("l", k), Meter: bucket.MeterOf(bucket.Rate{Amount: 1 << 20, Per: time.Second, Burst: 1 << 24})}})
		}
		a.ID = ids.Add(1)
		if err := s.Take(ctx, a); err != nil {
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
				if err := s.Take(ctx, a); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "takes/s")
}
