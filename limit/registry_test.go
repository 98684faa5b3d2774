package limit

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func anyLimit(rng *rand.Rand, keys int) Limit {
	l := limitOf(bucket.Rate{Amount: 1 + rng.Int64N(50), Per: time.Second, Burst: 1 + rng.Int64N(10)})
	if rng.IntN(3) == 0 {
		l = rollingLimit(1+rng.Int64N(10), time.Second)
	}
	l.Scope, l.MaxKeys = "tenant", keys
	return l
}

// Each key behaves as if it were alone and never forgotten, however many there are and however few are kept.
func TestKeysAreIndependentAndEvictionForgetsNothing(t *testing.T) {
	cases(t, 1000, func(rng *rand.Rand) error {
		l := anyLimit(rng, 5+rng.IntN(8)) // room for all 20 when none can be forgotten
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
	if r.Len() > 100 {
		t.Errorf("%d keys, want 100", r.Len())
	}
	// Limiters in use are not forgotten. They are evicted when they are full again.
	for i := range 350 {
		r.Get(2000*time.Second, fmt.Sprint("drained", i)).Try(2000*time.Second, 1)
	}
	if r.Len() < 350 || r.Len() > 400 {
		t.Errorf("%d keys, want the 350 that are drained, 400 at most", r.Len())
	}
	for i := range 100 {
		r.Get(3000*time.Second, fmt.Sprint("later", i))
	}
	if r.Len() != 100 {
		t.Errorf("%d keys are left, want 100", r.Len())
	}
	known := 0
	for range r.All() {
		known++
	}
	if known != 101 {
		t.Errorf("%d limiters are listed, want 100 and that of no key", known)
	}
}

// However many keys are drained, memory is bounded. The registry returns to its size when they are full again.
func TestKeysAreBounded(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1})
	l.MaxKeys = 100
	r := mustRegistry(t, l)
	got := 0
	for i := range 100_000 {
		if r.Get(0, fmt.Sprint(i)).Try(0, 1) {
			got++
		}
	}
	if r.Len() != 400 || got != 401 {
		t.Errorf("%d keys and %d grants, want 400 and 401", r.Len(), got)
	}
	if m := r.Get(0, "new"); m != r.Get(0, "newer") || m != r.other.Load() {
		t.Error("keys for which there is no room do not share a limiter")
	}
	for i := range 50 {
		r.Get(2*time.Hour, fmt.Sprint("later", i))
	}
	if r.Len() != 100 || r.other.Load() != nil {
		t.Errorf("%d keys when all were full again, want 100 and none that share", r.Len())
	}
}

// A slow pace must not prevent the registry from forgetting unused keys.
func TestPacedKeysCanBeForgotten(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 1})
	l.MaxKeys = 10
	r := mustRegistry(t, l)
	for i := range 1000 {
		now := time.Duration(i) * time.Second
		m := r.Get(now, fmt.Sprint(i))
		m.bucket.pace(now, 5)
		m.Try(now, 1)
	}
	if r.Len() > 10 {
		t.Errorf("%d keys, want 10", r.Len())
	}
}

// A caller that looked up a key before its eviction gets nothing from the old limiter that the new one grants too.
func TestAHolderOfAnEvictedLimiterCannotTakeTwice(t *testing.T) {
	const burst = 50
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: burst}), rollingLimit(burst, time.Hour)} {
		l.MaxKeys = 1
		for range 100 {
			if got := takeWhileEvicted(mustRegistry(t, l), burst); got > burst {
				t.Fatalf("%v: %d went, want at most %d", l, got, burst)
			}
		}
		r := mustRegistry(t, l)
		held := r.Get(0, "key")
		r.Get(0, "other")
		if _, _, ok := held.Take(0, 1); ok || held.Try(0, 1) || !held.shape().retired() {
			t.Errorf("%v: an evicted limiter gives, or is not retired", l)
		}
	}
}

// takeWhileEvicted lets half of the callers ask a limiter that they hold while its key is evicted.
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
				var p Charges
				p.Add(Charge{r, "key", 1})
				if p.Take(0).OK {
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

// A change of the limit must not make keys larger either.
func TestAnIdleKeyIsSmall(t *testing.T) {
	const keys = 100_000
	l := limitOf(bucket.Rate{Amount: 10, Per: time.Second})
	before := heap()
	r := mustRegistry(t, l)
	for i := range keys {
		r.Get(0, fmt.Sprintf("tenant-%013d", i)).Try(0, 1)
	}
	for i := range 3 {
		if i > 0 {
			l.Amount *= 2
			if err := r.Set(time.Duration(i), l); err != nil {
				t.Fatal(err)
			}
		}
		each := float64(heap()-before) / keys
		t.Logf("after %d changes an idle key with a name of 20 bytes takes %.0f bytes", i, each)
		if each > 200 {
			t.Errorf("%.0f bytes, want at most 200", each)
		}
	}
	runtime.KeepAlive(r)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestSetReachesEveryKey(t *testing.T) {
	r := mustRegistry(t, limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}))
	own := func(key string) Level { return r.Get(0, key).Look(0) }
	own("old")
	r.Get(0, "alone").Pause(0, time.Minute) // has its own timetable now
	if err := r.Set(0, limitOf(bucket.Rate{Amount: 200, Per: time.Second, Burst: 30})); err != nil {
		t.Fatal(err)
	}
	for key, left := range map[string]int64{"": 10, "old": 10, "alone": 10, "newest": 30} {
		if v := own(key); v.Full != 30 || v.Left != left || v.PerSecond < 199.99 || v.PerSecond > 200.01 {
			t.Errorf("key %q looks like %+v, want %d of 30 at 200", key, v, left)
		}
	}
	if r.Get(0, "old").bucket.line.Load() != r.Get(0, "").bucket.line.Load() || r.Get(0, "new").bucket.line.Load() != r.Get(0, "newest").bucket.line.Load() {
		t.Error("keys that are alike do not share their timetable")
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

// A learned rate is kept while the properties under which it was learned stay the same, and dropped if they change.
func TestSetKeepsWhatWasLearnt(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 10})
	l.Adaptive.On = true
	r := mustRegistry(t, l)
	var p Charges
	p.Add(Charge{r, "key", 1})
	p.Take(0)
	p.Learn(time.Second, 0, outcome.Throttled, nil)
	learnt, k := r.Get(0, "key").Look(0).PerSecond, r.Get(0, "key").bucket.learner()
	if learnt > 99 || k == nil {
		t.Fatalf("runs at %v after a throttle", learnt)
	}
	l.MaxKeys, l.Operations = 7, []string{"put"}
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	if m := r.Get(0, "key"); m.Look(0).PerSecond != learnt || m.bucket.learner() != k || r.Limit().MaxKeys != 7 {
		t.Errorf("with other operations it runs at %v, before at %v", m.Look(0).PerSecond, learnt)
	}
	l.Adaptive.Cut = 0.9
	if err := r.Set(0, l); err != nil {
		t.Fatal(err)
	}
	if m := r.Get(0, "key"); m.Look(0).PerSecond < 99 || m.bucket.learner() != nil {
		t.Errorf("with other rules it runs at %v, and has learnt: %v", m.Look(0).PerSecond, m.bucket.learner() != nil)
	}
}

// A registry that starts empty starts every key empty, whenever it comes, as if all had been drained at that instant.
// A change does not fill them.
func TestAnEmptyRegistryGivesNothingAway(t *testing.T) {
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 10}), rollingLimit(10, 10*time.Second)} {
		start := time.Hour
		r, err := NewEmpty(start, l)
		if err != nil {
			t.Fatal(err)
		}
		if r.Get(start, "").Look(start).Left != 0 || r.Get(start, "a").Look(start).Left != 0 {
			t.Errorf("%v: something is left at the start", l)
		}
		now := start + 4*time.Second
		if got, want := r.Get(now, "b").Look(now), r.Get(now, "a").Look(now); got != want {
			t.Errorf("%v: a key that comes later has %+v, the first %+v", l, got, want)
		}
		l.Amount *= 2
		if err := r.Set(now, l); err != nil || r.Get(now, "c").Look(now).Left > 4+l.Amount/2 {
			t.Errorf("%v: after a change a new key has %d left, %v", l, r.Get(now, "c").Look(now).Left, err)
		}
		now = start + time.Minute
		if v := r.Get(now, "d").Look(now); v.Left != v.Full {
			t.Errorf("%v: a minute later a new key has %d left of %d", l, v.Left, v.Full)
		}
	}
}

// A change that a limiter cannot follow makes a new, empty one, which inherits the debt.
func TestAChangeBeyondAllBoundsGivesNothingAway(t *testing.T) {
	for name, l := range map[string]Limit{
		"faster":  limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10}),
		"slower":  limitOf(bucket.Rate{Amount: 1, Per: 100 * 24 * time.Hour, Burst: 1}),
		"rolling": rollingLimit(10, time.Second),
	} {
		r := mustRegistry(t, limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 5}))
		old := r.Get(0, "key")
		turn, _, _ := old.Take(0, 5)
		old.Owe(0, 4)
		if err := r.Set(0, l); err != nil {
			t.Fatal(err)
		}
		m := r.Get(0, "key")
		if m == old || !old.shape().retired() {
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
			t.Errorf("%s: the next waits %v, want what the 4 that are owed take, %v", name, wait, 4*per)
		}
	}
}

// Keys are added, used, evicted, changed and paced, all at the same time.
func TestTheRegistryBearsEverythingAtOnce(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1000, Per: time.Second, Burst: 10})
	l.MaxKeys = 1 // so that keys sometimes share a limiter
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
					m.bucket.pace(now, 1000*rng.Float64())
				case 1:
					l := l
					l.Amount += int64(rng.IntN(3))
					r.Set(now, l)
				case 2:
					for range r.All() {
					}
				case 3:
					m.Pause(now, now+time.Microsecond)
				case 4:
					m.Owe(now, 1)
				default:
					if turn, _, ok := m.Take(now, 1); ok && rng.IntN(2) == 0 {
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

// A limiter may be evicted between the look-up and the take. That is not a refusal.
func TestWhoFindsALimiterThatIsJustEvictedLooksAgain(t *testing.T) {
	l := Limit{Name: "l", Scope: "tenant", Rate: bucket.Rate{Amount: 10, Per: time.Second}}
	r, err := NewRegistry(0, l)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Get(0, "a").shape().retire(0) {
		t.Fatal("a limiter that nobody uses was not evicted")
	}
	evicted := time.AfterFunc(time.Millisecond, func() { r.forget("a") })
	defer evicted.Stop()
	var p Charges
	p.Add(Charge{r, "a", 1})
	if v := p.Take(0); !v.OK {
		t.Errorf("refused: %+v", v)
	}
}
