package counter

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A Book looks up a value by key without a lock or an allocation. To publish new values it copies its map. It does so when
// their number, or the number of their lookups, is large relative to the map. So a Book is for few keys, such as names in
// policies. Most callers use NewBook.
type Book[K comparable, S any] struct {
	known atomic.Pointer[map[K]S]
	mu    *sync.Mutex
	open  func(K) S // creates the value of a key; runs under mu
	fresh map[K]S   // values that are not in known yet; guarded by mu
	asked int       // lookups in fresh; guarded by mu
}

// NewBook returns an empty Book. Only holders of mu may change it.
func NewBook[K comparable, S any](mu *sync.Mutex, open func(K) S) *Book[K, S] {
	return &Book[K, S]{mu: mu, open: open}
}

// Get returns the value of k and creates it if it does not exist.
func (b *Book[K, S]) Get(k K) S {
	if known := b.known.Load(); known != nil {
		if s, ok := (*known)[k]; ok {
			return s
		}
	}
	return b.add(k)
}

func (b *Book[K, S]) add(k K) S {
	b.mu.Lock()
	defer b.mu.Unlock()
	var known map[K]S
	if at := b.known.Load(); at != nil {
		known = *at
	}
	s, ok := known[k]
	if ok {
		return s
	}
	if s, ok = b.fresh[k]; ok {
		b.asked++
	} else {
		if s = b.open(k); b.fresh == nil {
			b.fresh = make(map[K]S)
		}
		b.fresh[k] = s
	}
	if len(b.fresh) > len(known)/8 || b.asked > len(known) {
		b.turn(known)
	}
	return s
}

// turn publishes fresh values for lookups without the lock. The caller holds mu.
func (b *Book[K, S]) turn(known map[K]S) {
	next := make(map[K]S, len(known)+len(b.fresh))
	maps.Copy(next, known)
	maps.Copy(next, b.fresh)
	b.known.Store(&next)
	b.fresh, b.asked = nil, 0
}

// Clear removes everything. The caller holds mu, so that values that open creates meanwhile are not found after Clear.
func (b *Book[K, S]) Clear() {
	b.known.Store(nil)
	b.fresh, b.asked = nil, 0
}
