package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/outcome"
)

// shared is the store as a Cache uses it: for a moment only, and not while it fails.
type shared struct {
	blobs   Blobs
	locker  Locker // nil if the store has no locks
	o       Options
	n       *counters
	breaker *breaker.Breaker
	start   time.Time
	queue   *outbox.Outbox[write]

	mu      sync.Mutex
	reading int // reads under way
	closed  bool
	wg      sync.WaitGroup
}

// mostReads bounds reads under way: those of a store that has stopped to answer
// pile up until the breaker has opened.
const mostReads = 256

func newShared(o Options, n *counters) *shared {
	s := &shared{blobs: o.Shared, o: o, n: n, start: time.Now()}
	s.locker, _ = o.Shared.(Locker)
	s.breaker = breaker.New("cache", breaker.Config{
		Consecutive: 3, FirstOpen: time.Second, Open: 30 * time.Second, Successes: 1, ProbeTimeout: 5 * time.Second,
	}, nil)
	s.queue = s.newQueue(o)
	return s
}

// A use of the store is judged once, by whoever knows first: it itself when it ends,
// or the clock.
type use struct {
	s      *shared
	op     string
	permit breaker.Ticket
	told   atomic.Bool
}

// use asks whether the store may be called now.
func (s *shared) use(op string) (*use, bool) {
	p, _, ok := s.breaker.Admit(time.Since(s.start))
	if !ok {
		s.n.sharedSkipped.Add(1)
		return nil, false
	}
	return &use{s: s, op: op, permit: p}, true
}

func (u *use) end(err error) {
	if u.told.Swap(true) {
		return
	}
	class := outcome.OK
	switch {
	case errors.Is(err, errLeft):
		class = outcome.Canceled
	case err != nil:
		class = outcome.Failed
		u.s.n.sharedErrors.Add(1)
		if f := u.s.o.Events.SharedFailed; f != nil {
			tell(func() { f(u.op, err) })
		}
	}
	u.s.breaker.Report(time.Since(u.s.start), u.permit, outcome.Outcome{Class: class})
}

// errLeft is the end of a context that is nobody's fault.
var errLeft = errors.New("the cache was closed")

// errSlow is why a call of the store is given up.
var errSlow = errors.New("the store of the cache did not answer in time")

// fetch asks the store for a key's answer and keeps it in memory. It returns when
// Options.SharedTimeout is over or ctx ends, even if the store does not.
func (c *Cache) fetch(ctx context.Context, k Key) (e Entry, ok bool) {
	u, ok := c.shared.use("get")
	if !ok {
		return Entry{}, false
	}
	got := make(chan *Entry, 1)
	// Who asks next has use of the answer even if this caller leaves.
	read, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), c.o.SharedTimeout, errSlow)
	if !c.shared.reads(func() {
		defer cancel()
		e := c.shared.get(read, k, u)
		if e != nil {
			c.hold(c.o.Now(), k.clone(), *e)
		}
		got <- e
	}) {
		cancel()
		u.end(errLeft)
		return Entry{}, false
	}
	found := await(ctx, read, got)
	if found == nil {
		return Entry{}, false
	}
	return *found, true
}

// await waits for what a read finds, for the end of the read, which may come later than
// that of its context, or for a caller who leaves.
func await(ctx, read context.Context, got <-chan *Entry) *Entry {
	select {
	case e := <-got:
		return e
	case <-ctx.Done():
		return nil
	case <-read.Done():
	}
	select {
	case e := <-got: // it has ended just now, which ends its context
		return e
	default:
		return nil
	}
}

// reads starts a read, unless too many are under way or close does not wait for it.
func (s *shared) reads(read func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.reading >= mostReads {
		s.n.sharedSkipped.Add(1)
		return false
	}
	s.reading++
	s.wg.Go(func() {
		defer func() {
			s.mu.Lock()
			s.reading--
			s.mu.Unlock()
		}()
		read()
	})
	return true
}

// get reads a value. One that cannot be understood is none.
func (s *shared) get(ctx context.Context, k Key, u *use) *Entry {
	late := context.AfterFunc(ctx, func() { u.end(errSlow) })
	sum := k.Sum()
	value, err := s.blobs.Get(ctx, sum[:])
	late()
	u.end(why(ctx, err))
	if err != nil || len(value) == 0 {
		return nil
	}
	e, err := decode(sum, value, s.o.MaxEntry)
	if err != nil {
		s.n.sharedDamaged.Add(1)
		return nil
	}
	return &e
}

// why is the cause of an error, if that is the end of ctx.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// lock reports whether this process is the first to refresh a key. If the store cannot say,
// which is not sure, it may as well.
func (s *shared) lock(ctx context.Context, k Key, keep time.Duration) (first, sure bool) {
	if s.locker == nil {
		return true, false
	}
	u, ok := s.use("lock")
	if !ok {
		return true, false
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.SharedTimeout, errSlow)
	defer cancel()
	sum := k.Sum()
	first, err := s.locker.Lock(ctx, sum[:], keep)
	u.end(why(ctx, err))
	return first || err != nil, err == nil
}
