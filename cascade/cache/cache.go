// Package cache stores complete answers for a limited time, in memory and optionally in a store for a fleet. It does not
// depend on HTTP servers or language models. An answer is a status, a few headers and bytes. The caller creates the key.
//
//	e, state, age := c.Get(ctx, now, key)
//	switch state {
//	case cache.Stale: // answer with e, and
//		c.Refresh(key, func(ctx context.Context) (cache.Entry, error) { return ask(ctx) })
//	case cache.Old: // ask upstream; answer with e only if that and everything else fails
//	case cache.Miss: // ask upstream
//	}
//
// An answer is fresh for its TTL. After that it is stale for a while: it is still used, and refreshed in the background.
// Then it is old: a last resort. The two windows are those of RFC 5861. Both start at the end of the TTL.
//
// # Bounds
//
// Memory holds a limited number of bytes. A Get that finds an answer in memory does not block or allocate. Otherwise Get
// asks the store, if there is one, for at most Options.SharedTimeout. A failing store is not asked for a while. Writes
// to the store wait in a bounded queue and are dropped if it is full. A damaged or foreign value in the store counts as
// missing.
//
// # Tenants
//
// The tenant is part of the key, in memory and in the store. A value of the store is only accepted for the key for which
// it was written. This protects against mistakes, not against attackers: whoever can write to the store can write
// answers.
package cache

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Cache stores answers. Create it with New and end it with Close. It is safe for concurrent use.
type Cache struct {
	o        Options
	memory   *memory
	shared   *shared // nil without a store
	refresh  refreshes
	counters counters

	// ctx is the context of background work. Close cancels it.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// New returns a Cache, or all mistakes in the options.
func New(o Options) (*Cache, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	o = o.WithDefaults()
	c := &Cache{o: o}
	m, err := newMemory(o)
	if err != nil {
		return nil, err
	}
	c.memory = m
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	if o.Shared != nil {
		c.shared = newShared(o, &c.counters)
	}
	return c, nil
}

// Get returns the answer for a key, its state, and the time since it was stored, which is never negative. The entry is
// shared and must not be changed. On a Miss it is empty.
//
// If memory has no answer that may be used now, Get asks the store. It waits for at most Options.SharedTimeout, and
// until ctx ends.
func (c *Cache) Get(ctx context.Context, now time.Time, k Key) (e Entry, s State, age time.Duration) {
	e, s, age = c.look(now, k)
	if c.shared != nil && (s == Miss || s == Old) {
		if far, ok := c.fetch(ctx, k); ok {
			if fs, fa := c.o.state(now, &far); fs != Miss && (s == Miss || fa < age) {
				e, s, age = far, fs, fa
				c.counters.sharedHits.Add(1)
			}
		}
	}
	c.counters.found(s)
	return e, s, age
}

// Peek is like Get, but it only looks in memory and changes no counters.
func (c *Cache) Peek(now time.Time, k Key) (e Entry, s State, age time.Duration) {
	return c.look(now, k)
}

// Until returns the time after which an entry cannot be used.
func (c *Cache) Until(e Entry) time.Time { return e.Stored.Add(c.o.keep(&e)) }

func (c *Cache) look(now time.Time, k Key) (Entry, State, time.Duration) {
	h, ok := c.memory.get(k)
	if !ok {
		return Entry{}, Miss, 0
	}
	s, age := c.o.state(now, &h.Entry)
	if s == Miss {
		c.memory.drop(k, h)
		return Entry{}, Miss, 0
	}
	return h.Entry, s, age
}

// Put stores an answer, also in the store if there is one. It reports whether the answer is small enough. It does not
// replace an answer with a later Stored. A zero e.Stored means now. The entry must not be changed afterwards. Put stores
// every answer it gets. Storable reports which answers should be stored.
func (c *Cache) Put(now time.Time, k Key, e Entry) bool {
	if e.Stored.IsZero() {
		e.Stored = now
	}
	e.Body = fit(e.Body)
	k = k.clone()
	if !c.hold(now, k, e) {
		return false
	}
	c.counters.stored.Add(1)
	if c.shared != nil {
		if keep := c.o.keep(&e) - e.age(now); keep > 0 {
			c.shared.write(k, e, keep)
		}
	}
	return true
}

func (c *Cache) hold(now time.Time, k Key, e Entry) bool {
	if s, _ := c.o.state(now, &e); s == Miss {
		return true // expired, so Get would not return it
	}
	return c.memory.put(k, e, func(old *Entry) bool {
		s, _ := c.o.state(now, old)
		return s != Miss && old.Stored.After(e.Stored)
	})
}

// fit returns b without much unused capacity.
func fit(b []byte) []byte {
	if cap(b)-len(b) > len(b)/8+64 {
		return slices.Clone(b)
	}
	return b
}

// Forget drops the answer for a key from memory. The store keeps its copy until it expires.
func (c *Cache) Forget(k Key) { c.memory.forget(k) }

// Resize changes Options.MaxBytes and evicts what exceeds it.
func (c *Cache) Resize(n int64) {
	o := c.o
	o.MaxBytes, o.QueueBytes = n, queued(n)
	if c.shared != nil {
		c.shared.queue.Resize(o.QueueBytes)
	}
	c.memory.cache.SetMaximum(uint64(o.kept()))
	c.memory.cache.CleanUp()
}

// Close cancels running refreshes, allows Options.WriteTimeout for pending writes to the store, and waits for both. A
// closed Cache still answers from memory.
func (c *Cache) Close() error {
	c.refresh.close()
	c.cancel(errLeft)
	c.wg.Wait()
	if c.shared != nil {
		c.shared.close()
	}
	return nil
}
