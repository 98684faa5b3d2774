package counter

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A Book finds what belongs to a key without a lock and without allocating. It is copied to be
// changed, so keys should be few: names that policies declare. Most callers want NewBook.
type Book[K comparable, S any] struct {
	known atomic.Pointer[map[K]S]
	mu    *sync.Mutex
	open  func(K) S // makes what belongs to a key; it runs under mu
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
	next := make(map[K]S)
	if known := b.known.Load(); known != nil {
		if s, ok := (*known)[k]; ok {
			return s
		}
		maps.Copy(next, *known)
	}
	s := b.open(k)
	next[k] = s
	b.known.Store(&next)
	return s
}

// Clear forgets everything. The caller holds mu, so that what add makes meanwhile is not found
// after Clear.
func (b *Book[K, S]) Clear() { b.known.Store(nil) }
