package sim_test

import (
	"testing"
	"time"

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
