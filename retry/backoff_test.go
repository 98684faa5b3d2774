package retry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func TestCeilingDoublesUpToTheCapAndNeverOverflows(t *testing.T) {
	forever := time.Duration(math.MaxInt64)
	for _, tt := range []struct {
		base, top time.Duration
		attempt   int
		want      time.Duration
	}{
		{0, 0, 1, 100 * time.Millisecond},
		{0, 0, 2, 200 * time.Millisecond},
		{0, 0, 8, 12800 * time.Millisecond},
		{0, 0, 9, 20 * time.Second},
		{0, 0, 0, 100 * time.Millisecond},
		{0, 0, math.MinInt, 100 * time.Millisecond},
		{-1, -1, 2, 200 * time.Millisecond},
		{0, 0, 62, 20 * time.Second},
		{0, 0, 63, 20 * time.Second},
		{0, 0, 64, 20 * time.Second},
		{0, 0, 65, 20 * time.Second},
		{0, 0, 1e9, 20 * time.Second},
		{0, 0, math.MaxInt, 20 * time.Second},
		{1, forever, 62, 1 << 61},
		{1, forever, 63, 1 << 62},
		{1, forever, 64, forever},
		{3, forever, 62, 3 << 61},
		{3, forever, 63, forever},
		{forever, forever, 2, forever},
		{time.Minute, time.Second, 1, time.Second},
	} {
		c := retry.Config{Base: tt.base, Cap: tt.top, Jitter: retry.NoJitter}
		if got := c.Delay(tt.attempt, 0, outcome.Failed, nil); got != tt.want {
			t.Errorf("base %v cap %v attempt %d: got %v, want %v", tt.base, tt.top, tt.attempt, got, tt.want)
		}
	}
}

func TestThrottlesHaveABaseOfTheirOwn(t *testing.T) {
	c := retry.Config{Base: time.Millisecond, ThrottleBase: time.Second, Jitter: retry.NoJitter}
	for _, class := range outcome.Classes {
		want := 2 * time.Millisecond
		if class == outcome.Throttled {
			want = 2 * time.Second
		}
		if got := c.Delay(2, 0, class, nil); got != want {
			t.Errorf("%v: got %v, want %v", class, got, want)
		}
	}
}

// TestAMillionDrawsStayInBounds draws at the cap, where a jitter applied before the cap would vanish and one applied without it
// would exceed it.
func TestAMillionDrawsStayInBounds(t *testing.T) {
	const draws, top = 1_000_000, time.Second
	for _, tt := range []struct {
		jitter         retry.Jitter
		low, high, avg time.Duration
	}{
		{retry.NoJitter, top, top, top},
		{retry.FullJitter, 0, top, top / 2},
		{retry.EqualJitter, top / 2, top, top * 3 / 4},
		{retry.DecorrelatedJitter, top / 10, top, top * 55 / 100},
		{retry.RangeJitter, top / 2, top * 3 / 2, top},
		{retry.AddedJitter, top, top * 3 / 2, top * 5 / 4},
	} {
		t.Run(tt.jitter.String(), func(t *testing.T) {
			seed := rand.Uint64()
			r := rand.New(rand.NewPCG(seed, 0))
			c := retry.Config{Base: top / 10, Cap: top, Jitter: tt.jitter}
			sum, least, most, atMost := time.Duration(0), top*10, time.Duration(0), 0
			for range draws {
				d := c.Delay(20, top, outcome.Failed, r)
				if d < tt.low || d > tt.high {
					t.Fatalf("seed %d: drew %v, want %v to %v", seed, d, tt.low, tt.high)
				}
				if d == tt.high {
					atMost++
				}
				sum, least, most = sum+d, min(least, d), max(most, d)
			}
			if avg := sum / draws; avg < tt.avg*99/100 || avg > tt.avg*101/100 {
				t.Errorf("seed %d: mean %v, want %v", seed, avg, tt.avg)
			}
			if least > tt.low+top/1000 || most < tt.high-top/1000 {
				t.Errorf("seed %d: drew %v to %v, want all of %v to %v", seed, least, most, tt.low, tt.high)
			}
			if tt.jitter != retry.NoJitter && atMost > 10 {
				t.Errorf("seed %d: %d callers in step at the cap", seed, atMost)
			}
		})
	}
}

func TestDrawsReachBothEnds(t *testing.T) {
	c := retry.Config{Base: 1, Cap: 1}
	seen := map[time.Duration]int{}
	for range 1000 {
		seen[c.Delay(1, 0, outcome.Failed, nil)]++
	}
	if len(seen) != 2 || seen[0] < 350 || seen[1] < 350 {
		t.Errorf("from 0 to 1ns was drawn %v", seen)
	}
}

// bound returns the maximum delay according to the documentation of Config, with a tolerance for float64.
func bound(c retry.Config) float64 {
	const little = 1 + 1e-12
	if !(c.High > 0) {
		c.High = 1.5
	}
	if c.Cap <= 0 {
		c.Cap = 20 * time.Second
	}
	if c.Added <= 0 {
		c.Added = 500 * time.Millisecond
	}
	switch c.Jitter {
	case retry.RangeJitter:
		return float64(c.Cap) * c.High * little
	case retry.AddedJitter:
		return (float64(c.Cap) + float64(c.Added)) * little
	}
	return float64(c.Cap) * little
}

func TestDelayKeepsItsBoundForAnyConfig(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	size := func() time.Duration { return time.Duration(r.Int64() >> r.IntN(63)) }
	for range 20_000 {
		c := retry.Config{Base: size(), ThrottleBase: size(), Cap: size(), Added: size(), Jitter: jitters[r.IntN(len(jitters))]}
		c.Low = r.Float64() * 2
		c.High = c.Low + r.Float64()*10
		attempt, prev, class := r.Int()>>r.IntN(63), size(), outcome.Classes[r.IntN(6)]
		if d := c.Delay(attempt, prev, class, r); d < 0 || float64(d) > bound(c) {
			t.Fatalf("seed %d: %+v attempt %d prev %v: %v", seed, c, attempt, prev, d)
		}
	}
}

func TestDelayRepeatsWithItsSeed(t *testing.T) {
	for _, j := range jitters {
		c := retry.Config{Jitter: j}
		a, b := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(1, 2))
		for i := range 1000 {
			if x, y := c.Delay(i, time.Second, outcome.Failed, a), c.Delay(i, time.Second, outcome.Failed, b); x != y {
				t.Fatalf("%v attempt %d: %v and %v from one seed", j, i, x, y)
			}
		}
	}
}

func TestDelayAllocatesNothing(t *testing.T) {
	for _, j := range jitters {
		c := retry.Config{Jitter: j}
		if n := testing.AllocsPerRun(100, func() { c.Delay(3, time.Second, outcome.Failed, nil) }); n != 0 {
			t.Errorf("%v: %v allocations, want 0", j, n)
		}
	}
}

func FuzzDelay(f *testing.F) {
	f.Add(int64(0), int64(0), int64(0), int64(0), 0.0, 0.0, uint8(0), uint8(0), 0, int64(0), uint64(1))
	f.Add(int64(1), int64(2), int64(math.MaxInt64), int64(math.MaxInt64), 0.5, 1e300, uint8(4), uint8(2), 64, int64(math.MaxInt64), uint64(2))
	f.Add(int64(-1), int64(math.MinInt64), int64(-5), int64(-1), math.NaN(), math.Inf(1), uint8(5), uint8(3), math.MaxInt, int64(-9), uint64(3))
	f.Fuzz(func(t *testing.T, base, throttle, top, added int64, low, high float64, jitter, class uint8, attempt int, prev int64, seed uint64) {
		c := retry.Config{
			Base: time.Duration(base), ThrottleBase: time.Duration(throttle), Cap: time.Duration(top), Added: time.Duration(added),
			Low: low, High: high, Jitter: retry.Jitter(jitter),
		}
		d := c.Delay(attempt, time.Duration(prev), outcome.Class(class), rand.New(rand.NewPCG(seed, 0)))
		if d < 0 {
			t.Fatalf("%+v: waits %v", c, d)
		}
		if c.Validate() == nil && float64(d) > bound(c) {
			t.Fatalf("%+v: waits %v, over %v", c, d, time.Duration(bound(c)))
		}
	})
}

func BenchmarkDelay(b *testing.B) {
	for _, j := range jitters {
		b.Run(j.String(), func(b *testing.B) {
			c := retry.Config{Jitter: j}
			b.ReportAllocs()
			for b.Loop() {
				c.Delay(3, time.Second, outcome.Failed, nil)
			}
		})
	}
}
