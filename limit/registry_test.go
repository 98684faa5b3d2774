package limit

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/clock"
)

func anyLimit(rng *rand.Rand, keys int) Limit {
	l := limitOf(bucket.Rate{Amount: 1 + rng.Int64N(50), Per: time.Second, Burst: 1 + rng.Int64N(10)})
	if rng.IntN(3) == 0 {
		l = rolling(1+rng.Int64N(10), time.Second)
	}
	l.Scope, l.MaxKeys = "tenant", keys
	return l
}

// Each key behaves as if it were alone and never forgotten, however many there
// are and however few are remembered.
func TestKeysAreIndependentAndEvictionForgetsNothing(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		l := anyLimit(rng, 1+rng.IntN(8))
		r, err := NewRegistry(0, l)
		if err != nil {
			return err
		}
		alone := map[string]*Limiter{}
		now := time.Duration(0)
		for step := range 150 {
			now += time.Duration(upTo(rng, int64(2*time.Second)))
			key := fmt.Sprint(rng.IntN(20))
			if alone[key] == nil {
				alone[key], _ = New(0, l)
			}
			n := 1 + rng.Int64N(l.Most())
			if got, want := r.Get(now, key).Try(now, n), alone[key].Try(now, n); got != want {
				return fmt.Errorf("%v, step %d: key %s, try %d: %v; alone %v", l, step, key, n, got, want)
			}
			if got, want := r.Get(now, key).Look(now).Left, alone[key].Look(now).Left; got != want {
				return fmt.Errorf("%v, step %d: key %s has %d left; alone %d", l, step, key, got, want)
			}
			if rng.IntN(20) == 0 {
				r.Shrink(now)
			}
		}
		return nil
	})
}

func TestTheRegistryKeepsItsSize(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1})
	l.MaxKeys = 100
	r := mustRegistry(t, l)
	for i := range 1000 {
		now := time.Duration(i) * time.Second
		r.Get(now, fmt.Sprint(i)).Try(now, 1)
	}
	if r.Len() > 100 || r.Crammed() != 0 {
		t.Errorf("%d keys, %d crammed; want 100 and 0", r.Len(), r.Crammed())
	}
	// Limiters in use are not forgotten, and leave when they are full again.
	for i := range 500 {
		r.Get(2000*time.Second, fmt.Sprint("drained", i)).Try(2000*time.Second, 1)
	}
	if r.Len() < 500 || r.Crammed() == 0 {
		t.Errorf("%d keys, %d crammed; want the drained ones kept", r.Len(), r.Crammed())
	}
	if left := r.Shrink(3000 * time.Second); left != 100 || r.Len() != 100 {
		t.Errorf("%d keys are left, want 100", left)
	}
	known := 0
	for range r.All() {
		known++
	}
	if known != 101 {
		t.Errorf("%d limiters are listed, want 100 and that of no key", known)
	}
}

// A slow pace must not keep the registry from forgetting whom it does not need.
func TestPacedKeysCanBeForgotten(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1})
	l.MaxKeys = 10
	r := mustRegistry(t, l)
	r.Pace(0, 5)
	for i := range 1000 {
		now := time.Duration(i) * time.Second
		r.Get(now, fmt.Sprint(i)).Try(now, 1)
	}
	if r.Len() > 10 {
		t.Errorf("%d keys, want 10", r.Len())
	}
}

// Whoever looked a key up before it was evicted gets nothing from the old limiter
// that the new one gives too.
func TestAHolderOfAnEvictedLimiterCannotTakeTwice(t *testing.T) {
	const burst = 50
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: burst}), rolling(burst, time.Hour)} {
		l.MaxKeys = 1
		for range 100 {
			if got := takeWhileEvicted(mustRegistry(t, l), burst); got > burst {
				t.Fatalf("%v: %d went, want at most %d", l, got, burst)
			}
		}
		r := mustRegistry(t, l)
		held := r.Get(0, "key")
		r.Get(0, "other")
		if _, _, ok := held.Take(0, 1, bucket.Never); ok || held.Try(0, 1) || !held.Retired() {
			t.Errorf("%v: an evicted limiter gives, or is not retired", l)
		}
	}
}

// takeWhileEvicted lets half of all callers ask a limiter that they hold, while
// its key is evicted.
func takeWhileEvicted(r *Registry, burst int) int64 {
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		held := r.Get(0, "key")
		wg.Go(func() {
			if i == 0 {
				r.Get(0, "other") // evicts the key if it is still full
				return
			}
			for k := range burst {
				m := held
				if k%2 == 0 {
					m = r.Get(0, "key")
				}
				if m.Try(0, 1) {
					got.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return got.Load()
}

func TestAPermitFindsTheLimiterThatIsInUse(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 50})
	l.MaxKeys = 1
	r := mustRegistry(t, l)
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			for k := range 200 {
				r.Get(0, fmt.Sprint("other", i, k))
				var p Permit
				p.Add(Charge{r, "key", 1})
				if p.Take(0, 0).OK {
					got.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got.Load() != 50 {
		t.Errorf("%d permits, want 50", got.Load())
	}
}

func TestAnIdleKeyIsSmall(t *testing.T) {
	const keys = 100_000
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second})
	r := mustRegistry(t, l)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for i := range keys {
		r.Get(0, fmt.Sprintf("tenant-%013d", i)).Try(0, 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / keys
	t.Logf("an idle key with a name of 20 bytes takes %.0f bytes", each)
	if each > 200 {
		t.Errorf("%.0f bytes, want at most 200", each)
	}
	runtime.KeepAlive(r)
}

func TestSetAndPaceReachEveryKey(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}))
	own := func(key string) Level { return r.Get(0, key).Look(0) }
	own("old")
	r.Get(0, "alone").Pause(0, time.Minute) // has a timetable of its own now
	r.Pace(0, 25)
	for _, key := range []string{"", "old", "alone", "new"} {
		if got := own(key).PerSecond; got < 24.99 || got > 25.01 {
			t.Errorf("key %q runs at %v, want 25", key, got)
		}
	}
	if r.Get(0, "old").line.Load() != r.Get(0, "newer").line.Load() {
		t.Error("keys that are alike do not share their timetable")
	}
	if err := r.Set(0, limitOf(bucket.Rate{Amount: 200, Per: time.Second, Burst: 30})); err != nil {
		t.Fatal(err)
	}
	for key, left := range map[string]int64{"": 10, "old": 10, "alone": 10, "newest": 30} {
		if v := own(key); v.Full != 30 || v.Left != left || v.PerSecond < 199.99 || v.PerSecond > 200.01 {
			t.Errorf("key %q looks like %+v, want %d of 30 at 200", key, v, left)
		}
	}
	if v := own("alone"); v.Paused != time.Minute {
		t.Errorf("the pause is %v, want 1m0s", v.Paused)
	}
	if r.Limit().Burst != 30 {
		t.Errorf("the limit is %v", r.Limit())
	}
	if err := r.Set(0, Limit{}); err == nil || r.Limit().Burst != 30 {
		t.Errorf("a limit that is none was set: %v, %v", err, r.Limit())
	}
}

// A change that a limiter cannot bear makes a new one, empty, and what those who
// wait at the old one are still to use is owed at the new one.
func TestAChangeBeyondAllBoundsGivesNothingAway(t *testing.T) {
	for name, l := range map[string]Limit{
		"faster":  limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10}),
		"slower":  limitOf(bucket.Rate{Amount: 1, Per: 100 * 24 * time.Hour, Burst: 1}),
		"rolling": rolling(10, time.Second),
	} {
		r := mustRegistry(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 5}))
		old := r.Get(0, "key")
		crowdOf(old, 1).cells[0].high.Store(5) // and a place in a cell
		turn, _, _ := old.Take(0, 5, 0)
		if _, wait, ok := old.Take(0, 4, time.Hour); !ok || wait != 4*time.Second {
			t.Fatalf("%s: waits %v, %v", name, wait, ok)
		}
		if err := r.Set(0, l); err != nil {
			t.Fatal(err)
		}
		m := r.Get(0, "key")
		if m == old || !old.Retired() {
			t.Fatalf("%s: the old limiter is still in use", name)
		}
		old.Back(0, turn, bucket.All)
		if old.Try(0, 1) || old.Try(10*time.Second, 1) || old.Ask(0, 1) == 0 {
			t.Errorf("%s: the old limiter still gives", name)
		}
		if m.Try(0, 1) || m.Look(0).Left != 0 {
			t.Errorf("%s: the new limiter is not empty", name)
		}
		per := time.Duration(float64(time.Second) / m.Look(0).PerSecond)
		if wait := m.Ask(0, 1); name != "rolling" && wait < 4*per {
			t.Errorf("%s: the next waits %v, want what 4 who wait take, %v", name, wait, 4*per)
		}
	}
}

// Keys come, are taken from, evicted, set and paced all at the same time.
func TestTheRegistryBearsEverythingAtOnce(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10})
	l.MaxKeys = 4
	r := mustRegistry(t, l)
	start := clock.System.Now()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for range 2000 {
				now := clock.System.Now() - start
				m := r.Get(now, fmt.Sprint(rng.IntN(8)))
				switch rng.IntN(12) {
				case 0:
					r.Pace(now, 1000*rng.Float64())
				case 1:
					r.Set(now, l)
				case 2:
					r.Shrink(now)
				case 3:
					m.Pause(now, now+time.Microsecond)
				case 4:
					m.Owe(now, 1)
				default:
					if turn, _, ok := m.Take(now, 1, time.Second); ok && rng.IntN(2) == 0 {
						m.Back(now, turn, 1)
					}
				}
				if v := m.Look(now); v.Left < 0 || v.Left > v.Full {
					t.Errorf("%d left of %d", v.Left, v.Full)
				}
			}
		})
	}
	wg.Wait()
}
