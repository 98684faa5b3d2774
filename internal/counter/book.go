package counter

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A Book finds what belongs to a key without a lock and without allocating. It is copied to be
// changed, a ninth at a time, so keys should be few: names that policies declare. Most callers want
// NewBook.
type Book[K comparable, S any] struct {
	known atomic.Pointer[map[K]S]
	mu    *sync.Mutex
	open  func(K) S // makes what belongs to a key; it runs under mu
	fresh map[K]S   // what is not in known yet; under mu
	asked int       // how often something of fresh was asked for; under mu
}

// NewBook makes an empty Book, which is changed under mu only.
func NewBook[K comparable, S any](mu *sync.Mutex, open func(K) S) *Book[K, S] {
	return &Book[K, S]{mu: mu, open: open}
}

// Get is what belongs to k. It is made if there is none.
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

// turn lets what is fresh be found without the lock. The caller holds mu.
func (b *Book[K, S]) turn(known map[K]S) {
	next := make(map[K]S, len(known)+len(b.fresh))
	maps.Copy(next, known)
	maps.Copy(next, b.fresh)
	b.known.Store(&next)
	b.fresh, b.asked = nil, 0
}

// Clear forgets everything. The caller holds mu, so that what add makes meanwhile is not found
// after Clear.
func (b *Book[K, S]) Clear() {
	b.known.Store(nil)
	b.fresh, b.asked = nil, 0
}
