package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errTooLarge means that an answer is larger than one entry may be.
var errTooLarge = errors.New("the answer exceeds the cache's entry size")

// Refresh has fn renew the answer to a key, in the background, and reports whether
// it was started. It is not if one is under way for the key, or has failed just now (a second
// after the first failure, twice as long after each further one, at most a minute), if
// Options.Refreshes are under way, or after Close. With a store that has locks, one
// process of the fleet refreshes at a time, and takes over what another has just done.
//
// fn gets a context of its own, which ends with Options.RefreshTimeout or Close. What it
// returns is kept; if it must not be, as Storable says, fn returns an error. A panic
// of fn is a failure. fn should let those who wait for their answer go first.
func (c *Cache) Refresh(k Key, fn func(context.Context) (Entry, error)) bool {
	return c.refresh.begin(k, c.o.Now(), c.o.Refreshes, func() {
		c.wg.Go(func() {
			err := errExited
			defer func() { c.refreshed(k, err) }()
			err = c.renew(k, fn)
		})
	})
}

// errElsewhere means that another process is at it.
var errElsewhere = errors.New("another process refreshes")

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
		err = errTooLarge // without the pause of a failure, every stale hit would ask for it again
	}
	return err
}

// alone reports whether this process is the one of the fleet that refreshes a key. It is
// for as long as a refresh may take, and for as many as it makes meanwhile.
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

// refreshed counts a refresh and tells.
func (c *Cache) refreshed(k Key, err error) {
	if err != nil && !errors.Is(err, errElsewhere) {
		c.counters.refreshFailures.Add(1)
		if f := c.o.Events.RefreshFailed; f != nil {
			tell(func() { f(k, err) })
		}
	}
	c.refresh.end(k, c.o.Now(), err)
}

// renewed reports whether the store has a fresh answer, which memory then has too.
func (c *Cache) renewed(ctx context.Context, k Key) bool {
	e, ok := c.fetch(ctx, k)
	if !ok {
		return false
	}
	s, _ := c.o.state(c.o.Now(), &e)
	return s == Hit
}

var errExited = errors.New("the refresh ended its goroutine")

// safely makes an error of a panic: nobody is there to catch it.
func safely(ctx context.Context, fn func(context.Context) (Entry, error)) (e Entry, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the refresh panicked: %v", r)
		}
	}()
	return fn(ctx)
}

// refreshes are those under way, and those that have failed.
type refreshes struct {
	mu      sync.Mutex
	keys    map[Key]*attempt
	running int
	closed  bool
}

// An attempt is what is known of a key's refreshes.
type attempt struct {
	running bool
	failed  int       // in a row
	after   time.Time // of which the next may begin
	ours    time.Time // until when this process has the lock
}

const (
	firstPause = time.Second
	mostPause  = time.Minute

	mostAttempts = 4096 // that are remembered
)

// begin calls start if a refresh may begin. Close does not come in between.
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

// pausing is not misled by a clock that was set back.
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

// sweep forgets failures that are over; and if there are few of them, some that are not.
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

// pause is how long to wait after so many failures before the latest.
func pause(failed int) time.Duration {
	return min(firstPause<<min(failed, 16), mostPause)
}

func (r *refreshes) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}
