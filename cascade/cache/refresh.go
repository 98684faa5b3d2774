package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errTooLarge means that an answer exceeds the maximum size of an entry.
var errTooLarge = errors.New("the answer exceeds the cache's entry size")

// Refresh calls fn in the background to refresh the answer for a key, and reports whether it started. It does not start
// if a refresh for the key is running, if Options.Refreshes are running, or after Close. It also does not start for a
// while after a failure: one second after the first failure, twice as long after each further one, at most a minute. If
// the store has locks, only one process of the fleet refreshes at a time, and an answer that another process has just
// stored is used.
//
// fn gets a context that ends with Options.RefreshTimeout or Close. Its result is stored. If the result must not be
// stored (see Storable), fn must return an error. A panic of fn counts as a failure. fn should have a lower priority
// than waiting callers.
func (c *Cache) Refresh(k Key, fn func(context.Context) (Entry, error)) bool {
	return c.refresh.begin(k, c.o.Now(), c.o.Refreshes, func() {
		c.wg.Go(func() {
			err := errExited
			defer func() { c.refreshed(k, err) }()
			err = c.renew(k, fn)
		})
	})
}

// errElsewhere means that another process is refreshing the answer.
var errElsewhere = errors.New("another process refreshes the answer")

func (c *Cache) renew(k Key, fn func(context.Context) (Entry, error)) error {
	ctx, cancel := context.WithTimeout(c.ctx, c.o.RefreshTimeout)
	defer cancel()
	if c.shared != nil {
		if c.renewed(ctx, k) {
			return nil
		}
		if !c.alone(ctx, k) {
			return errElsewhere
		}
	}
	c.counters.refreshes.Add(1)
	e, err := safely(ctx, fn)
	if err == nil && !c.Put(c.o.Now(), k, e) {
		err = errTooLarge // counts as a failure, because otherwise every stale hit would start a refresh
	}
	return err
}

// alone reports whether this process may refresh a key. The lock lasts for the longest refresh, and covers further
// refreshes of this process until it expires.
func (c *Cache) alone(ctx context.Context, k Key) bool {
	now := c.o.Now()
	if c.refresh.owns(k, now) {
		return true
	}
	keep := min(c.o.RefreshTimeout, c.o.TTL)
	first, sure := c.shared.lock(ctx, k, keep)
	if sure && first {
		c.refresh.own(k, now.Add(keep))
	}
	return first
}

func (c *Cache) refreshed(k Key, err error) {
	if err != nil && !errors.Is(err, errElsewhere) {
		c.counters.refreshFailures.Add(1)
		if f := c.o.Events.RefreshFailed; f != nil {
			tell(func() { f(k, err) })
		}
	}
	c.refresh.end(k, c.o.Now(), err)
}

// renewed reports whether the store has a fresh answer, and stores it in memory.
func (c *Cache) renewed(ctx context.Context, k Key) bool {
	e, ok := c.fetch(ctx, k)
	if !ok {
		return false
	}
	s, _ := c.o.state(c.o.Now(), &e)
	return s == Hit
}

var errExited = errors.New("the refresh ended its goroutine")

// safely converts a panic to an error, because no caller would recover it.
func safely(ctx context.Context, fn func(context.Context) (Entry, error)) (e Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the refresh panicked: %v", r)
		}
	}()
	return fn(ctx)
}

type refreshes struct {
	mu      sync.Mutex
	keys    map[Key]*attempt
	running int
	closed  bool
}

type attempt struct {
	running bool
	failed  int       // consecutive failures
	after   time.Time // earliest start of the next refresh
	ours    time.Time // end of this process's lock
}

const (
	firstPause = time.Second
	mostPause  = time.Minute

	mostAttempts = 4096 // maximum number of stored attempts
)

// begin calls start if a refresh may begin. It holds the lock, so close cannot run in between.
func (r *refreshes) begin(k Key, now time.Time, most int, start func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.running >= most {
		return false
	}
	a := r.keys[k]
	if a != nil && (a.running || a.pausing(now)) {
		return false
	}
	if a == nil {
		a = r.add(k, now)
	}
	a.running = true
	r.running++
	start()
	return true
}

// pausing reports whether the pause continues. It ignores a pause that is too long because the clock was set back.
func (a *attempt) pausing(now time.Time) bool {
	left := a.after.Sub(now)
	return left > 0 && left <= mostPause
}

func (r *refreshes) add(k Key, now time.Time) *attempt {
	if r.keys == nil {
		r.keys = make(map[Key]*attempt)
	}
	if len(r.keys) >= mostAttempts {
		r.sweep(now)
	}
	a := new(attempt)
	r.keys[k.clone()] = a
	return a
}

func (r *refreshes) owns(k Key, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return now.Before(r.keys[k].ours)
}

func (r *refreshes) own(k Key, until time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keys[k].ours = until
}

// sweep removes failures whose pause is over. If that is not enough, it removes others too.
func (r *refreshes) sweep(now time.Time) {
	for k, a := range r.keys {
		if !a.running && !a.pausing(now) {
			delete(r.keys, k)
		}
	}
	for k, a := range r.keys {
		if len(r.keys) < mostAttempts/2 {
			return
		}
		if !a.running {
			delete(r.keys, k)
		}
	}
}

func (r *refreshes) end(k Key, now time.Time, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	a := r.keys[k]
	a.running = false
	switch {
	case err == nil:
		delete(r.keys, k)
	case errors.Is(err, errElsewhere):
		a.after = now.Add(firstPause)
	default:
		a.after = now.Add(pause(a.failed))
		a.failed++
	}
}

// pause returns the pause after the given number of previous failures.
func pause(failed int) time.Duration {
	return min(firstPause<<min(failed, 16), mostPause)
}

func (r *refreshes) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
