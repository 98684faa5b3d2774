package weirprom

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A book finds the series of an event by what the event says of itself, without
// a lock and without allocating: a vector's own look-up does both. It is copied
// to be changed, which is seldom: keys are names that policies declare.
type book[K comparable, S any] struct {
	known atomic.Pointer[map[K]S]
	mu    *sync.Mutex
	open  func(K) S // finds the series of a key in the vectors, or makes it there
}

func newBook[K comparable, S any](mu *sync.Mutex, open func(K) S) *book[K, S] {
	return &book[K, S]{mu: mu, open: open}
}

func (b *book[K, S]) get(k K) S {
	if known := b.known.Load(); known != nil {
		if s, ok := (*known)[k]; ok {
			return s
		}
	}
	return b.add(k)
}

func (b *book[K, S]) add(k K) S {
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

// clear forgets all series; those that the vectors still have are found again.
// The caller holds mu, so that no series is put into the book between its leaving
// the book and its leaving the vector: it would count unseen for ever.
func (b *book[K, S]) clear() { b.known.Store(nil) }
