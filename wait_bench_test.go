//go:build unix

package weir_test

import (
	"context"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// BenchmarkOwnBesideShared runs users that all exceed their own limit, and share another limit, in real time. It
// reports which part of the shared limit they use, and the CPU time per grant.
func BenchmarkOwnBesideShared(b *testing.B) {
	for _, users := range []int{100, 1000, 10_000} {
		b.Run(fmt.Sprint(users), func(b *testing.B) {
			perSecond := float64(users) / 2
			p := steady(rate("all", int64(users), 2*sec, 10), scoped(rate("own", 1, sec, 1), "user"))
			p.MaxWait = time.Hour
			u := open(b, p, weir.Options{})
			ctx, cancel := context.WithCancel(background)
			var got tally
			var wg sync.WaitGroup
			for i := range 2 * users {
				c := weir.Call{Keys: map[string]string{"user": fmt.Sprint(i / 2)}}
				wg.Go(func() { insists(ctx, u, c, func() { got.add("", 1) }) })
			}
			time.Sleep(sec + time.Duration(users)*50*time.Microsecond) // all users wait
			begin, used, before := time.Now(), cpu(), got.all()[""]
			time.Sleep(3 * sec)
			took, n := time.Since(begin), float64(got.all()[""]-before)
			b.ReportMetric(float64(cpu()-used)/n/1000, "us/grant")
			b.ReportMetric(n/perSecond/took.Seconds(), "used")
			b.ReportMetric(0, "ns/op")
			cancel()
			wg.Wait()
		})
	}
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkTry64 runs 64 goroutines that need not wait.
func BenchmarkTry64(b *testing.B) {
	u := open(b, steady(rate("all", 1_000_000_000, sec, 1<<30)), weir.Options{})
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		var p weir.Permit
		for pb.Next() {
			if u.Try(weir.Call{}, &p).Allowed {
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
	})
}

func BenchmarkTry1(b *testing.B) {
	u := open(b, steady(rate("all", 1_000_000_000, sec, 1<<30)), weir.Options{})
	var p weir.Permit
	b.ReportAllocs()
	for b.Loop() {
		if u.Try(weir.Call{}, &p).Allowed {
			p.Report(outcome.Outcome{Class: outcome.OK})
		}
	}
}
