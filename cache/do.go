package cache

import (
	"context"
	"sync"
)

// Do has fn answer a key that Get has missed, and keeps the answer. With
// Options.Coalesce, callers who ask the same at the same time wait for the first of them,
// each no longer than its own ctx, and shared reports whether the answer is another's. A
// first caller that fails or leaves fails nobody else: each of the others then calls its
// own fn.
//
// fn returns an error for what must not be kept, and so must not be given to others, as
// Storable says.
func (c *Cache) Do(ctx context.Context, k Key, fn func(context.Context) (Entry, error)) (e Entry, shared bool, err error) {
	if !c.o.Coalesce {
		e, err = c.answer(ctx, k, fn)
		return e, false, err
	}
	f, first := c.flights.join(k)
	if first {
		defer c.flights.land(k, f)
		f.Entry, err = c.answer(ctx, k, fn)
		f.ok = err == nil
		return f.Entry, false, err
	}
	select {
	case <-f.done:
	case <-ctx.Done():
		return Entry{}, false, context.Cause(ctx)
	}
	if f.ok {
		c.counters.coalesced.Add(1)
		return f.Entry, true, nil
	}
	e, err = c.answer(ctx, k, fn)
	return e, false, err
}

func (c *Cache) answer(ctx context.Context, k Key, fn func(context.Context) (Entry, error)) (Entry, error) {
	e, err := fn(ctx)
	if err != nil {
		return Entry{}, err
	}
	now := c.o.Now()
	if e.Stored.IsZero() {
		e.Stored = now
	}
	c.Put(now, k, e)
	return e, nil
}

// flights are calls of Do that others may join.
type flights struct {
	mu  sync.Mutex
	all map[Key]*flight
}

// A flight is one of them. It is read once done is closed.
type flight struct {
	Entry
	ok   bool
	done chan struct{}
}

func (f *flights) join(k Key) (fl *flight, first bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fl := f.all[k]; fl != nil {
		return fl, false
	}
	if f.all == nil {
		f.all = make(map[Key]*flight)
	}
	fl = &flight{done: make(chan struct{})}
	f.all[k] = fl
	return fl, true
}

// land ends a flight, also after a panic.
func (f *flights) land(k Key, fl *flight) {
	f.mu.Lock()
	delete(f.all, k)
	f.mu.Unlock()
	close(fl.done)
}
