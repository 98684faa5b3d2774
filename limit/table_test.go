package limit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// forget removes a key, as an eviction does.
func (r *Registry) forget(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys.without(key)
}

func (t *table) without(key string) {
	for i := range t.buckets.Load() {
		for at := t.bucket(i); at.Load() != nil; at = &at.Load().next {
			if at.Load().key == key {
				t.forget(at)
				return
			}
		}
	}
}

func keyOf(i int) string { return fmt.Sprintf("%0*d", 1+i%50, i) }

// A table contains the same keys as a map after any additions and removals, and lists each key once.
func TestATableIsAMap(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	cases(t, 30, func(rng *rand.Rand) error {
		var tab table
		want := map[string]*Limiter{}
		size := 1 + rng.IntN(5000)
		for step := range 10_000 {
			key := keyOf(rng.IntN(size))
			if got := tab.get(key); got != want[key] {
				return fmt.Errorf("step %d: %q: got %p, want %p", step, key, got, want[key])
			}
			switch grows := step/3000%2 == 0; {
			case want[key] == nil && (grows || rng.IntN(8) == 0):
				k := newRow(key)
				tab.add(k, &k.own)
				want[key] = &k.own
			case want[key] != nil && !grows && tab.n > 1:
				before := tab.n
				tab.sweep(before, func(m *Limiter) bool {
					for key, known := range want {
						if known == m {
							delete(want, key)
							return true
						}
						break
					}
					return false
				})
				if tab.n != len(want) {
					return fmt.Errorf("step %d: %d keys, want %d", step, tab.n, len(want))
				}
				tab.without(key)
				delete(want, key)
			}
		}
		seen := map[string]int{}
		of := tab.buckets.Load()
		for i := range of {
			tab.each(i, of, func(k *row) { seen[k.key]++ })
		}
		for key, m := range want {
			if seen[key] != 1 || tab.get(key) != m {
				return fmt.Errorf("%q: seen %d times", key, seen[key])
			}
		}
		if len(seen) != len(want) || tab.n != len(want) {
			return fmt.Errorf("%d keys are shown and %d counted of %d", len(seen), tab.n, len(want))
		}
		return nil
	})
}

// A table has about as many buckets as keys, also after it has become smaller.
func TestATableHasTheSizeOfItsKeys(t *testing.T) {
	var tab table
	const n = 20_000
	for i := range n {
		k := newRow(keyOf(i))
		tab.add(k, &k.own)
	}
	if got := tab.buckets.Load(); got > n || got < n-1 {
		t.Errorf("%d buckets of %d keys", got, n)
	}
	for range n {
		tab.sweep(101, func(*Limiter) bool { return true })
	}
	if got := tab.buckets.Load(); tab.n != 100 || got > 300 {
		t.Errorf("%d buckets of %d keys", got, tab.n)
	}
	for i := range n {
		if k := newRow(fmt.Sprint("again ", i)); tab.get(k.key) == nil {
			tab.add(k, &k.own)
		}
	}
	for i := range n {
		if tab.get(fmt.Sprint("again ", i)) == nil {
			t.Fatalf("key %d of %d is lost", i, n)
		}
	}
	if got := len(*tab.segments.Load()); got > 7+(n+100)/mostBuckets {
		t.Errorf("%d segments", got)
	}
}

// A list of all keys contains each key that exists throughout exactly once, although other keys come and go.
func TestAllSeesEveryKeyOnce(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1})
	l.MaxKeys = 2000
	r := mustRegistry(t, l)
	stays := map[string]int{}
	for i := range 500 {
		key := fmt.Sprint("stays", i)
		r.Get(0, key).Try(0, 1) // it is not full at 0
		stays[key] = 0
	}
	for i := range 1200 {
		r.Get(0, fmt.Sprint("goes", i))
	}
	n := 0
	for key := range r.All() {
		if _, ok := stays[key]; ok {
			stays[key]++
		}
		for range 10 { // new keys come, and full ones are evicted
			n++
			r.Get(0, fmt.Sprint("comes", n))
		}
	}
	for key, times := range stays {
		if times != 1 {
			t.Errorf("%s is seen %d times", key, times)
		}
	}
}

// A key that is evicted and used again gets no more than one limiter would grant. Other keys come, and callers look
// up keys, while buckets are split and joined.
func TestEvictedKeysGetNoMoreThanOneLimiterWouldGive(t *testing.T) {
	const keys, callers, burst = 300, 4, 5
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: burst})
	l.MaxKeys = 200
	r := mustRegistry(t, l)
	var granted [keys]atomic.Int64
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(c), 7))
			for i := range 5000 {
				k := rng.IntN(keys)
				if r.Get(0, fmt.Sprint("key", k)).Try(0, 1) {
					granted[k].Add(1)
				}
				r.Get(0, fmt.Sprint(c, " passes ", i)) // full, so that it can be evicted, and evicts others
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			for range r.All() {
			}
		}
	})
	wg.Wait()
	for k := range granted {
		if n := granted[k].Load(); n > burst {
			t.Errorf("key %d got %d, want %d at most", k, n, burst)
		}
	}
}

// No bucket is joined while all keys are listed, however many are forgotten meanwhile: keys that stay are listed
// once. Afterwards the table shrinks to its number of keys.
func TestNothingIsJoinedWhileKeysAreListed(t *testing.T) {
	var tab table
	stays := map[*Limiter]int{}
	for i := range 5000 {
		k := newRow(keyOf(i))
		if tab.add(k, &k.own); i%50 == 0 {
			stays[&k.own] = 0
		}
	}
	sweep := func(n int) {
		for range n {
			tab.sweep(1, func(m *Limiter) bool { _, ok := stays[m]; return !ok })
		}
	}
	tab.reads++
	of := tab.buckets.Load()
	for from := range of {
		if from == of/4 {
			sweep(5000)
		}
		tab.each(from, of, func(k *row) {
			if _, ok := stays[k.limiter.Load()]; ok {
				stays[k.limiter.Load()]++
			}
		})
	}
	tab.reads--
	for m, times := range stays {
		if times != 1 {
			t.Errorf("%p is seen %d times", m, times)
		}
	}
	if tab.n != len(stays) {
		t.Errorf("%d keys, want %d", tab.n, len(stays))
	}
	k := newRow("another")
	for range 5000 { // each forgotten key may join two buckets
		tab.add(k, &k.own)
		tab.without("another")
	}
	if got := tab.buckets.Load(); got > 3*uint64(len(stays)) {
		t.Errorf("%d buckets of %d keys", got, tab.n)
	}
}
