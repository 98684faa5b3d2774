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

// A shared limits a Cache's use of the store: each call has a short timeout, and a failing store is not called.
type shared struct {
	blobs   Blobs
	locker  Locker // nil if the store has no locks
	o       Options
	n       *counters
	breaker *breaker.Breaker
	start   time.Time
	queue   *outbox.Outbox[write]

	mu      sync.Mutex
	reading int // running reads
	closed  bool
	wg      sync.WaitGroup
}

// mostReads limits the running reads. Reads of a store that stopped responding accumulate until the breaker opens.
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

// A use is one call of the store. Its result is reported once: at its end or at its timeout, whichever is first.
type use struct {
	s      *shared
	op     string
	permit breaker.Ticket
	told   atomic.Bool
}

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

// errLeft is the cause of a canceled context that does not count as a failure.
var errLeft = errors.New("the cache was closed")

// errSlow is the cause when a call of the store times out.
var errSlow = errors.New("the store of the cache did not answer in time")

// fetch reads the answer for a key from the store and keeps it in memory. It returns at Options.SharedTimeout or when
// ctx ends, even if the store does not.
func (c *Cache) fetch(ctx context.Context, k Key) (e Entry, ok bool) {
	u, ok := c.shared.use("get")
	if !ok {
		return Entry{}, false
	}
	got := make(chan *Entry, 1)
	// The read continues if this caller disconnects, because the next caller can use the answer.
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

// await waits for the result of a read, for the end of the read's context, or for the end of ctx. The read itself may
// end later than its context.
func await(ctx, read context.Context, got <-chan *Entry) *Entry {
	select {
	case e := <-got:
		return e
	case <-ctx.Done():
		return nil
	case <-read.Done():
	}
	select {
	case e := <-got: // it ended just now, which canceled its context
		return e
	default:
		return nil
	}
}

// reads starts a read. It returns false if too many are running or the cache is closed.
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

// get reads a value. An invalid value counts as missing.
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

// why returns the cause of ctx if an error occurred after ctx ended, and otherwise err.
func why(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

// lock reports whether this process may refresh a key. If the store cannot be asked, it may, and sure is false.
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
