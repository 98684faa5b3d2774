package limit

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// This test uses real cores, real time, and a clock that is read before the decision, so that some decisions use an
// old reading.
func TestManyCoresNeverGoOverTheLimit(t *testing.T) {
	for _, r := range []bucket.Rate{
		{Amount: 100_000, Per: time.Second, Burst: 100},
		{Amount: 1_000_000, Per: time.Second, Burst: 10_000},
		{Amount: 20_000_000, Per: time.Second, Burst: 1_000_000},
	} {
		start := clock.System.Now()
		m, err := New(start, limitOf(r))
		if err != nil {
			t.Fatal(err)
		}
		var got atomic.Int64
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() { got.Add(spin(m, start+100*time.Millisecond, i)) })
		}
		wg.Wait()
		took := clock.System.Now() - start
		if most := r.Burst + int64(r.PerSecond()*took.Seconds()) + 1; got.Load() > most {
			t.Errorf("%v: %d went in %v, want at most %d", r, got.Load(), took, most)
		}
		if got.Load() == 0 {
			t.Errorf("%v: nothing went", r)
		}
	}
}

// spin takes and returns units until the instant. It returns how many it kept.
func spin(m *Limiter, until time.Duration, i int) (kept int64) {
	for k := i; ; k++ {
		now := clock.System.Now()
		if now >= until {
			return kept
		}
		n := int64(1)
		if k%64 == 0 {
			n = 3
		}
		t, _, ok := m.Take(now, n)
		switch {
		case !ok:
		case k%16 == 0:
			m.Back(now, t, bucket.All)
		default:
			kept += n
		}
	}
}

// Callers on all cores take units while burst, rate and pauses change. Every granted unit is booked once.
func TestManyCoresShareWhatIsThere(t *testing.T) {
	const burst = 50_000
	m := mustNew(t, limitOf(bucket.Rate{Amount: 1, Per: time.Minute, Burst: burst}))
	blocksOf(m)
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for k := i; ; k++ {
				n := int64(1 + k%3)
				turn, _, ok := m.Take(0, n)
				switch {
				case !ok && n == 1:
					return
				case ok && k%5 == 0:
					m.Back(0, turn, bucket.All)
				case ok:
					got.Add(n)
				}
			}
		})
	}
	wg.Wait()
	for m.Try(0, 1) { // units returned after the last refusal
		got.Add(1)
	}
	if got.Load() > burst || got.Load() < burst-1 {
		t.Errorf("%d went, want %d", got.Load(), burst)
	}
}
