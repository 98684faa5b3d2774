package limit

import (
	"fmt"
	"iter"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/bucket"
)

// A Registry holds the limiters of one limit by key. A limiter is made full on
// first use and forgotten only when it is full again and room is needed, so
// that nobody gains by being forgotten. Get takes no lock for a key that is
// known.
type Registry struct {
	limit   atomic.Pointer[Limit]
	byKey   sync.Map                // string -> *Limiter
	single  atomic.Pointer[Limiter] // the limiter of the key "", which needs no lookup
	crammed atomic.Int64            // keys that were made although there was no room

	mu   sync.Mutex
	line *bucket.Line // what every new limiter starts from, shared until one changes
	most int
	keys []string // every key in byKey
	hand int      // where the search for a full limiter goes on
}

// NewRegistry makes a registry. The limit must be valid.
func NewRegistry(now time.Duration, l Limit) (*Registry, error) {
	if err := l.Validate(); err != nil {
		return nil, fmt.Errorf("limit %s: %w", l.Name, err)
	}
	r := &Registry{most: l.MaxKeys}
	if r.most == 0 {
		r.most = defaultKeys
	}
	line := l.line(now)
	r.limit.Store(&l)
	r.line = &line
	r.single.Store(newLimiter(l, &line))
	return r, nil
}

// Limit is the limit in force.
func (r *Registry) Limit() *Limit { return r.limit.Load() }

// Get is the limiter of the key. The key "" is the limit that has no scope.
func (r *Registry) Get(now time.Duration, key string) *Limiter {
	if key == "" {
		return r.single.Load()
	}
	if m, ok := r.byKey.Load(key); ok {
		return m.(*Limiter)
	}
	return r.add(now, key)
}

func (r *Registry) add(now time.Duration, key string) *Limiter {
	r.mu.Lock()
	defer r.mu.Unlock()
	if m, ok := r.byKey.Load(key); ok {
		return m.(*Limiter)
	}
	m := newLimiter(*r.limit.Load(), r.line)
	r.byKey.Store(key, m)
	if len(r.keys) < r.most || !r.replace(now, key) {
		r.keys = append(r.keys, key)
	}
	return m
}

// searched is how many limiters are looked at to find one that is full. When
// none is, the registry grows: forgetting a drained limiter would refill it.
const searched = 64

// replace puts the key in the place of one whose limiter is full.
func (r *Registry) replace(now time.Duration, key string) bool {
	for range min(searched, len(r.keys)) {
		r.hand = (r.hand + 1) % len(r.keys)
		old := r.keys[r.hand]
		m, _ := r.byKey.Load(old)
		if m.(*Limiter).retire(now) {
			r.byKey.Delete(old)
			r.keys[r.hand] = key
			return true
		}
	}
	r.crammed.Add(1)
	return false
}

// Shrink forgets full limiters until the registry is within its size again, and
// says how many keys are left.
func (r *Registry) Shrink(now time.Duration) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := len(r.keys) - 1; i >= 0 && len(r.keys) > r.most; i-- {
		m, _ := r.byKey.Load(r.keys[i])
		if m.(*Limiter).retire(now) {
			r.byKey.Delete(r.keys[i])
			r.keys[i] = r.keys[len(r.keys)-1]
			r.keys = r.keys[:len(r.keys)-1]
		}
	}
	return len(r.keys)
}

// Len is how many keys are known, the key "" apart. Crammed is how many of them
// were made although the registry was full of limiters in use.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.keys)
}

func (r *Registry) Crammed() int64 { return r.crammed.Load() }

// All is every key with its limiter, the key "" first.
func (r *Registry) All() iter.Seq2[string, *Limiter] {
	return func(yield func(string, *Limiter) bool) {
		if !yield("", r.single.Load()) {
			return
		}
		r.byKey.Range(func(k, m any) bool { return yield(k.(string), m.(*Limiter)) })
	}
}

// Set changes the limit of every key. Keys for which the change is beyond what
// their limiter can bear start anew, and empty.
func (r *Registry) Set(now time.Duration, l Limit) error {
	if err := l.Validate(); err != nil {
		return fmt.Errorf("limit %s: %w", l.Name, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	line := l.line(now)
	r.limit.Store(&l)
	r.line = &line
	if r.most = l.MaxKeys; r.most == 0 {
		r.most = defaultKeys
	}
	if m := r.single.Load(); !m.Set(now, l) {
		r.single.Store(r.anew(now, m, l, &line))
	}
	r.byKey.Range(func(k, m any) bool {
		if m := m.(*Limiter); !m.Set(now, l) {
			r.byKey.Store(k, r.anew(now, m, l, &line))
		}
		return true
	})
	return nil
}

// anew is an empty limiter in the place of one that is taken out of use; what
// those who wait there are still to use is owed here.
func (r *Registry) anew(now time.Duration, old *Limiter, l Limit, line *bucket.Line) *Limiter {
	owed := old.close(now)
	m := newLimiter(l, line)
	m.drain(now)
	m.Owe(now, owed)
	return m
}

// Pace lets every key run at another rate, at most the configured one, keys yet
// to come included.
func (r *Registry) Pace(now time.Duration, perSecond float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.line
	line := old.Pace(now, perSecond)
	r.line = &line
	for _, m := range r.All() {
		if !m.line.CompareAndSwap(old, &line) {
			m.Pace(now, perSecond)
		}
	}
}
