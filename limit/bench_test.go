package limit

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func benchLimiter(b *testing.B, r bucket.Rate) *Limiter {
	m, err := New(clock.System.Now(), limitOf(r))
	if err != nil {
		b.Fatal(err)
	}
	return m
}

var (
	wide   = bucket.Rate{Amount: 1e9, Per: time.Second, Burst: 1 << 40} // grants
	narrow = bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}           // refuses
)

func BenchmarkTry(b *testing.B) {
	m := benchLimiter(b, wide)
	for b.Loop() {
		m.Try(clock.System.Now(), 1)
	}
}

func BenchmarkTry64(b *testing.B) {
	m := benchLimiter(b, wide)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Try(clock.System.Now(), 1)
		}
	})
}

func BenchmarkRefuse64(b *testing.B) {
	m := benchLimiter(b, narrow)
	m.Try(clock.System.Now(), 1)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Try(clock.System.Now(), 1)
		}
	})
}

func BenchmarkTryRolling(b *testing.B) {
	m, err := New(clock.System.Now(), rollingLimit(60, time.Minute))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		m.Try(clock.System.Now(), 1)
	}
}

func BenchmarkTakeAndBack(b *testing.B) {
	m := benchLimiter(b, wide)
	for b.Loop() {
		now := clock.System.Now()
		t, _, _ := m.Take(now, 1)
		m.Back(now, t, bucket.All)
	}
}

func BenchmarkPermitByKey(b *testing.B) {
	r := mustRegistry(b, limitOf(wide))
	for b.Loop() {
		var p Charges
		p.Add(Charge{r, "tenant-000001", 1})
		now := clock.System.Now()
		p.Take(now)
		p.Settle(now, nil)
	}
}

func BenchmarkPermitOfThree(b *testing.B) {
	one, two, three := mustRegistry(b, limitOf(wide)), mustRegistry(b, limitOf(wide)), mustRegistry(b, limitOf(wide))
	for b.Loop() {
		var p Charges
		p.Add(Charge{one, "", 1})
		p.Add(Charge{two, "tenant-000001", 1})
		p.Add(Charge{three, "tenant-000001", 500})
		now := clock.System.Now()
		p.Take(now)
		p.Settle(now, nil)
	}
}
