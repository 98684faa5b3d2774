package counter

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestBucketsDivideTheWidth(t *testing.T) {
	for _, tt := range []struct {
		width   time.Duration
		buckets int
	}{{10 * time.Second, 1}, {10 * time.Second, 10}, {10 * time.Second, 32}, {time.Second, 20}, {time.Hour, 60}, {100 * time.Millisecond, 10}, {1000 * time.Hour, 1000}} {
		c := SingleWindow(tt.width, tt.buckets)
		if got := int(tt.width / c.Bucket()); got < tt.buckets || got >= 2*tt.buckets {
			t.Errorf("SingleWindow(%v, %d): %d buckets of %v", tt.width, tt.buckets, got, c.Bucket())
		}
		if got := 8 * len(c.words); got > 32*tt.buckets {
			t.Errorf("SingleWindow(%v, %d): %d bytes, want at most %d", tt.width, tt.buckets, got, 32*tt.buckets)
		}
	}
}

func TestShortWidthsStillCount(t *testing.T) {
	for _, width := range []time.Duration{1, 1000, time.Millisecond, 3 * time.Millisecond} {
		c := NewWindow(width, 100)
		c.Add(time.Second, 3)
		if got := c.Within(time.Second, width+c.Bucket()); got != 3 {
			t.Errorf("width %v: counted %d, want 3", width, got)
		}
	}
}

func TestEdges(t *testing.T) {
	c := SingleWindow(time.Second, 4)
	b := c.Bucket()
	c.Add(-time.Hour, 1) // times before the moment count as the moment
	c.Add(0, 1)
	if got := c.Within(0, time.Second); got != 2 {
		t.Errorf("at the beginning: %d, want 2", got)
	}
	c.Add(0, -5)
	if got := c.Within(0, time.Second); got != 0 {
		t.Errorf("after taking back too much: %d, want 0", got)
	}
	c.Add(b, math.MaxInt64)
	c.Add(b, 1)
	if got, want := c.Within(b, time.Second), int64(2*b-1); got != want {
		t.Errorf("full bucket holds %d, want %d", got, want)
	}
	if got := c.Covering(2*b, time.Second); got != int64(2*b-1) {
		t.Errorf("a full bucket spilled into its neighbour's epoch: %d", got)
	}
	c.Reset()
	if got := c.Covering(2*b, time.Second); got != 0 {
		t.Errorf("after Reset: %d, want 0", got)
	}
	c.Add(math.MaxInt64, 7)
	if got := c.Within(math.MaxInt64, time.Second); got != 7 {
		t.Errorf("at the end of time: %d, want 7", got)
	}
	c.Add(0, 1) // centuries old, even if it has the same place in the ring
	if got := c.Within(math.MaxInt64, time.Second); got != 7 {
		t.Errorf("after a late event: %d, want 7", got)
	}
}

// TestAgainstList compares the counter with a list of all events. They may differ by at most the events of one bucket at the
// beginning.
func TestAgainstList(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for run := range 1000 {
		width := time.Duration(r.Int64N(int64(20*time.Second))) + 10*time.Millisecond
		c := NewWindow(width, 1+r.IntN(40))
		var events []time.Duration
		now := time.Duration(r.Int64N(int64(time.Hour)))
		between := func(from, to time.Duration) (n int64) { // (from, to]
			for _, at := range events {
				if from < at && at <= to {
					n++
				}
			}
			return n
		}
		for range 60 {
			now += time.Duration(r.Int64N(int64(width)/8 + 1))
			if r.IntN(20) == 0 {
				now += 3 * width
			}
			at := now - min(now, time.Duration(r.Int64N(int64(c.Bucket())))) // a delayed goroutine
			events = append(events, at)
			c.Add(at, 1)
			w := time.Duration(r.Int64N(int64(width))) + 1
			exact := between(now-w, now)
			if got := c.Within(now, w); got > exact || got < between(now-w+c.Bucket(), now) {
				t.Fatalf("seed %d run %d: Within(%v, %v) = %d of %d", seed, run, now, w, got, exact)
			}
			if got := c.Covering(now, w); got < exact || got > between(now-w-c.Bucket(), now) {
				t.Fatalf("seed %d run %d: Covering(%v, %v) = %d of %d", seed, run, now, w, got, exact)
			}
		}
	}
}

// TestNothingLostOrMiscredited runs goroutines whose times differ by more than a ring while buckets roll over. At the end the
// counter has exactly the events that are recent enough.
func TestNothingLostOrMiscredited(t *testing.T) {
	seed := rand.Uint64()
	for run := range 20 {
		c := NewWindow(time.Second, 8)
		if run%2 == 0 {
			c = SingleWindow(time.Second, 8)
		}
		const writers, events = 8, 4000
		end := 4 * time.Duration(c.ring) * c.Bucket()
		var mu sync.Mutex
		perBucket := map[uint64]int64{}
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(run*writers+w)))
				mine := map[uint64]int64{}
				for i := range events {
					at := time.Duration(i)*end/events - time.Duration(r.Int64N(int64(2*time.Second)))
					mine[c.epoch(at)]++
					c.Add(at, 1)
				}
				mu.Lock()
				defer mu.Unlock()
				for e, n := range mine {
					perBucket[e] += n
				}
			})
		}
		wg.Wait()
		last := uint64(0)
		for e := range perBucket {
			last = max(last, e)
		}
		for e := last - c.ring + 1; e <= last; e++ {
			at := time.Duration(e) * c.Bucket()
			if got := c.Within(at, c.Bucket()); got != perBucket[e] {
				t.Fatalf("seed %d run %d: bucket %d holds %d, want %d", seed, run, e, got, perBucket[e])
			}
		}
	}
}

func TestContendedAddsAreAllCounted(t *testing.T) {
	c := SingleWindow(time.Second, 8)
	const writers, each = 4, 400_000 // long enough for writers to overlap on a busy machine
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			<-start
			for range each {
				c.Add(time.Second, 1)
			}
		})
	}
	close(start)
	wg.Wait()
	if got := c.Within(time.Second, time.Second); got != writers*each {
		t.Errorf("counted %d of %d", got, writers*each)
	}
}

func TestAddAllocatesNothing(t *testing.T) {
	c := NewWindow(10*time.Second, 32)
	now := time.Duration(0)
	if n := testing.AllocsPerRun(1000, func() { now += time.Millisecond; c.Add(now, 1) }); n >= 1 {
		t.Errorf("%v allocations an Add, want 0", n)
	}
}

func BenchmarkAdd(b *testing.B) {
	b.Run("one", func(b *testing.B) {
		c, now := NewWindow(10*time.Second, 32), time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 100
			c.Add(now, 1)
		}
	})
	b.Run("single", func(b *testing.B) {
		c, now := SingleWindow(10*time.Second, 32), time.Duration(0)
		b.ReportAllocs()
		for b.Loop() {
			now += 100
			c.Add(now, 1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		c := NewWindow(10*time.Second, 32)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			now := time.Duration(0)
			for pb.Next() {
				now += 100
				c.Add(now, 1)
			}
		})
	})
}

func BenchmarkWithin(b *testing.B) {
	c := NewWindow(10*time.Second, 32)
	for b.Loop() {
		c.Within(time.Minute, 10*time.Second)
	}
}
