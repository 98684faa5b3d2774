package sim_test

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sim"
)

// BenchmarkSleep measures one sleep of one of many goroutines, with a switch of goroutines each time.
func BenchmarkSleep(b *testing.B) {
	for _, n := range []int{1, 2, 1000} {
		b.Run(map[int]string{1: "alone", 2: "two", 1000: "thousand"}[n], func(b *testing.B) {
			w := newWorld(b, 1)
			for range n {
				w.Go(func() {
					for {
						sleep(w, time.Second)
					}
				})
			}
			step := time.Second
			b.ReportAllocs()
			for left := b.N; left > 0; left -= n {
				if err := w.RunUntil(step); err != nil {
					b.Fatal(err)
				}
				step += time.Second
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "sleeps/s")
		})
	}
}

// BenchmarkTimeout measures a context with a timeout, a sleep on it, and its end.
func BenchmarkTimeout(b *testing.B) {
	w := newWorld(b, 1)
	c := w.Clock()
	b.ReportAllocs()
	w.Go(func() {
		for range b.N {
			ctx, cancel := c.WithTimeout(background, time.Minute, nil)
			_ = c.Sleep(ctx, time.Second)
			cancel()
		}
	})
	run(b, w)
}

// BenchmarkGo measures a goroutine from its start to its end.
func BenchmarkGo(b *testing.B) {
	w := sim.New(1)
	defer w.Close()
	b.ReportAllocs()
	w.Go(func() {
		for range b.N {
			w.Go(func() {})
			sleep(w, 1)
		}
	})
	run(b, w)
}

// BenchmarkCalls measures calls through a limit, a breaker, retries and a timeout, each in its own goroutine, against
// an upstream that fails 1% of them.
func BenchmarkCalls(b *testing.B) {
	w := newWorld(b, 1)
	api := w.Upstream(sim.Behaviour{Latency: 50 * time.Millisecond, Jitter: 50 * time.Millisecond, Fails: 0.01})
	p := weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1000, Per: time.Second}}}}
	u, err := weir.New("api", p, weir.Options{Clock: w.Clock(), Rand: w.Rand()})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	w.Go(func() {
		for range b.N {
			w.Go(func() { _, _ = weir.Do(background, u, weir.Call{Safe: true}, api.Call) })
			sleep(w, time.Duration(w.Rand().ExpFloat64()/950*float64(time.Second)))
		}
	})
	run(b, w)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
