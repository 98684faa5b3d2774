package breaker_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
)

// Parallel benchmarks run 32 goroutines per core: 64 on two cores.
const perCore = 32

func benchCall(b *testing.B, c breaker.Config, parallel bool) {
	br := breaker.New("up", c, nil)
	call := func(now time.Duration) {
		p, _, _ := br.Admit(now)
		br.Report(now, p, outcome.Outcome{Class: outcome.OK})
	}
	b.ReportAllocs()
	if !parallel {
		for b.Loop() {
			call(time.Hour)
		}
		return
	}
	b.SetParallelism(perCore)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call(time.Hour)
		}
	})
}

var share = breaker.Config{Share: 0.5}

func BenchmarkCall(b *testing.B)              { benchCall(b, breaker.Config{}, false) }
func BenchmarkCallParallel(b *testing.B)      { benchCall(b, breaker.Config{}, true) }
func BenchmarkCallShare(b *testing.B)         { benchCall(b, share, false) }
func BenchmarkCallShareParallel(b *testing.B) { benchCall(b, share, true) }

// With the clock read for every call, for figures that include it.
func BenchmarkCallShareClockParallel(b *testing.B) {
	br := breaker.New("up", share, nil)
	b.ReportAllocs()
	b.SetParallelism(perCore)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			now := clock.System.Now()
			p, _, _ := br.Admit(now)
			br.Report(now, p, outcome.Outcome{Class: outcome.OK})
		}
	})
}

func openBreaker() *breaker.Breaker {
	br := breaker.New("up", breaker.Config{}, nil)
	br.ForceOpen(0, 0)
	return br
}

func BenchmarkRefuse(b *testing.B) {
	br := openBreaker()
	b.ReportAllocs()
	for b.Loop() {
		br.Admit(time.Hour)
	}
}

func BenchmarkRefuseParallel(b *testing.B) {
	br := openBreaker()
	b.ReportAllocs()
	b.SetParallelism(perCore)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			br.Admit(time.Hour)
		}
	})
}

func BenchmarkRejectedCall(b *testing.B) {
	br := breaker.New("up", breaker.Config{}, nil)
	b.ReportAllocs()
	for b.Loop() {
		p, _, _ := br.Admit(time.Hour)
		br.Report(time.Hour, p, outcome.Outcome{Class: outcome.Rejected})
	}
}

func BenchmarkFailureAndSuccess(b *testing.B) {
	br := breaker.New("up", breaker.Config{Consecutive: 5}, nil)
	b.ReportAllocs()
	for b.Loop() {
		p, _, _ := br.Admit(time.Hour)
		br.Report(time.Hour, p, outcome.Outcome{Class: outcome.Failed})
		br.Report(time.Hour, p, outcome.Outcome{Class: outcome.OK})
	}
}

func BenchmarkGroupFor(b *testing.B) {
	g := breaker.NewGroup(0, breaker.Config{}, nil)
	keys := make([]string, 1000)
	for i := range keys {
		keys[i] = string(rune('a'+i%26)) + time.Duration(i).String()
		g.For(0, keys[i])
	}
	b.ReportAllocs()
	b.SetParallelism(perCore)
	b.RunParallel(func(pb *testing.PB) {
		for i := 0; pb.Next(); i++ {
			g.For(time.Hour, keys[i%len(keys)])
		}
	})
}

// A member of a fleet. The fleet is not called while the breaker is closed.
func BenchmarkCallInAFleet(b *testing.B) {
	br := breaker.New("up", breaker.Config{}, nil)
	br.Join(new(counter))
	call := func(now time.Duration) {
		p, _, _ := br.Admit(now)
		br.Report(now, p, outcome.Outcome{Class: outcome.OK})
	}
	b.ReportAllocs()
	for b.Loop() {
		call(time.Hour)
	}
}

// The open time is over and another process has the probe.
func BenchmarkRefuseForAFleet(b *testing.B) {
	br := openBreaker()
	br.Join(new(counter))
	br.Adopt(0, br.State().Gen, breaker.State{Phase: breaker.HalfOpen})
	b.ReportAllocs()
	for b.Loop() {
		br.Admit(time.Hour)
	}
}
