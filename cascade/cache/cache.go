// Package cache keeps whole answers for a while, in memory and, if there is a store,
// for a fleet. It knows neither HTTP servers nor language models: an answer is a
// status, a few headers and bytes, and the caller makes the key.
//
//	e, state, age := c.Get(ctx, now, key)
//	switch state {
//	case cache.Stale: // answer with e, and
//		c.Refresh(key, func(ctx context.Context) (cache.Entry, error) { return ask(ctx) })
//	case cache.Old: // ask upstream; answer with e only if that and everything else fails
//	case cache.Miss: // ask upstream
//	}
//
// An answer is fresh for its TTL, then stale for a while in which it is used once more
// and renewed behind the caller's back, and then old: better than nothing. The two
// windows are those of RFC 5861, and both begin when the TTL is over.
//
// # Bounds
//
// Memory holds at most so many bytes. A Get that memory can answer waits for nobody
// and allocates nothing. Otherwise it asks the store, if there is one, and waits
// for it no longer than Options.SharedTimeout; of a store that fails it asks nothing
// for a while. Writes to the store wait in a bounded queue, and are dropped when that
// is full. What the store has damaged, or what is not ours, counts as not there.
//
// # Tenants
//
// The tenant is part of the key, in memory and in the store, and a value of the store is
// believed only under the key that it was written for. That keeps mistakes apart, not
// attackers: who can write to the store can write answers.
package cache

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Cache keeps answers. Make it with New and end it with Close. It is safe for
// concurrent use.
type Cache struct {
	o        Options
	memory   *memory
	shared   *shared // nil if there is none
	refresh  refreshes
	counters counters

	// ctx is that of what goes on behind the callers' backs, until Close.
	ctx    context.Context
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
}

// New makes a Cache, or says everything that is wrong with the options.
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

// Get finds the answer to a key and says how fresh it is, and how old: the time since it
// was stored, never negative. Nobody may change what it holds. On a Miss it is empty.
//
// With a store, Get asks it if memory has nothing that may be used now, and waits for it no
// longer than Options.SharedTimeout and no longer than ctx.
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

// Peek is Get for what memory has, which counts nothing and asks no store.
func (c *Cache) Peek(now time.Time, k Key) (e Entry, s State, age time.Duration) {
	return c.look(now, k)
}

// Until is when an entry is of no use any more.
func (c *Cache) Until(e Entry) time.Time { return e.Stored.Add(c.o.keep(&e)) }

// look finds what memory has.
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

// Put keeps an answer, and has it written to the store if there is one. It reports
// whether it is small enough to be kept. An answer that was stored later is not replaced.
// If e.Stored is not set it is now. Nobody may change what the entry holds any more.
// Put keeps whatever it is given; Storable says what should be.
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

// hold keeps an answer in memory.
func (c *Cache) hold(now time.Time, k Key, e Entry) bool {
	if s, _ := c.o.state(now, &e); s == Miss {
		return true // nobody would find it
	}
	return c.memory.put(k, e, func(old *Entry) bool {
		s, _ := c.o.state(now, old)
		return s != Miss && old.Stored.After(e.Stored)
	})
}

// fit gives away room that bytes do not need, if it is much.
func fit(b []byte) []byte {
	if cap(b)-len(b) > len(b)/8+64 {
		return slices.Clone(b)
	}
	return b
}

// Forget drops what memory has of a key. The store keeps its own until that has had its
// time.
func (c *Cache) Forget(k Key) { c.memory.forget(k) }

// Resize changes how much memory the cache has, Options.MaxBytes. What is too much goes.
func (c *Cache) Resize(n int64) {
	o := c.o
	o.MaxBytes, o.QueueBytes = n, queued(n)
	if c.shared != nil {
		c.shared.queue.Resize(o.QueueBytes)
	}
	c.memory.cache.SetMaximum(uint64(o.kept()))
	c.memory.cache.CleanUp()
}

// Close ends the refreshes under way, gives what is to be written to the store
// Options.WriteTimeout, and waits for all of it. A closed Cache still answers from
// memory.
func (c *Cache) Close() error {
	c.refresh.close()
	c.cancel(errLeft)
	c.wg.Wait()
	if c.shared != nil {
		c.shared.close()
	}
	return nil
}
