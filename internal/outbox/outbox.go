// Package outbox sends things in the background, so that their producers do not wait: log lines,
// messages, metrics, writes to a store. Nobody waits for where they go.
package outbox

import (
	"context"
	"sync"
	"time"
)

// A Config says how things are sent, and how many wait.
type Config[T any] struct {
	// Send makes one attempt to send x, and returns 0 if x is done with, or after how long to
	// try again: x stays where it is, with what Send changed in it. ctx ends when Close may
	// wait no longer.
	Send func(ctx context.Context, x *T) (again time.Duration)

	Most    int              // things held at most, those included that are being sent; 0 means no bound
	Size    func(x *T) int64 // must not change while x is held; nil means that sizes do not matter
	Bytes   int64            // the sum of Size, likewise; 0 means no bound
	Workers int              // goroutines that send; 0 means 1, which keeps the order

	// Newest keeps what came last where there is no room: the oldest that waits is dropped for
	// it. Otherwise what comes last is dropped.
	Newest bool

	// Hurry has Flush and Close try at once what would be tried again later.
	Hurry bool

	// Dropped, unless nil, is told of what will not be sent: what found no room, what made
	// room, and what was left when Close could wait no longer. It must not use the Outbox.
	Dropped func(x *T)
}

// An Outbox holds what is to be sent until that has happened. Make one with New and end it with
// Close. It is safe for concurrent use.
type Outbox[T any] struct {
	c    Config[T]
	ctx  context.Context
	end  context.CancelFunc
	done chan struct{} // closed when all workers have ended

	mu      sync.Mutex
	moved   *sync.Cond // something came, left or was asked for
	waiting []T
	sending int
	bytes   int64  // of what waits
	out     int64  // of what is being sent
	came    uint64 // things taken
	left    uint64 // of those, that are sent or dropped
	hurries uint64
	closed  bool
}

// New makes an outbox and starts its workers.
func New[T any](c Config[T]) *Outbox[T] {
	o := &Outbox[T]{c: c, done: make(chan struct{})}
	o.ctx, o.end = context.WithCancel(context.Background())
	o.moved = sync.NewCond(&o.mu)
	var workers sync.WaitGroup
	for range max(c.Workers, 1) {
		workers.Go(o.work)
	}
	go func() {
		workers.Wait()
		close(o.done)
	}()
	return o
}

// Put has x sent. It never waits, and reports whether x was taken.
func (o *Outbox[T]) Put(x T) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := o.size(&x)
	for !o.room(n) {
		if o.closed || !o.c.Newest || len(o.waiting) == 0 {
			o.drop(&x)
			return false
		}
		oldest := o.pop()
		o.left++
		o.drop(&oldest)
	}
	o.waiting = append(o.waiting, x)
	o.bytes += n
	o.came++
	o.moved.Broadcast()
	return true
}

// room reports whether something of a size may wait, too.
func (o *Outbox[T]) room(n int64) bool {
	return !o.closed && (o.c.Most <= 0 || len(o.waiting)+o.sending < o.c.Most) && (o.c.Bytes <= 0 || o.bytes+o.out+n <= o.c.Bytes)
}

func (o *Outbox[T]) size(x *T) int64 {
	if o.c.Size == nil {
		return 0
	}
	return o.c.Size(x)
}

func (o *Outbox[T]) drop(x *T) {
	if o.c.Dropped != nil {
		o.c.Dropped(x)
	}
}

// Resize changes how much may wait. What waits already stays.
func (o *Outbox[T]) Resize(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.c.Bytes = bytes
}

// Waiting is how many things wait, and the sum of their sizes, those not counted that are being
// sent.
func (o *Outbox[T]) Waiting() (n int, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting), o.bytes
}

// Flush waits until what has come so far is sent or dropped, or ctx ends, and reports whether
// all of it has.
func (o *Outbox[T]) Flush(ctx context.Context) bool {
	stop := context.AfterFunc(ctx, o.wake)
	defer stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.hurry()
	for until := o.came; o.left < until; o.moved.Wait() {
		if ctx.Err() != nil {
			return false
		}
	}
	return true
}

// Close lets nothing more in, and waits until all is sent or ctx ends: what is left then is
// dropped. It returns how many things were not done with at that moment, those among them that
// were being sent.
func (o *Outbox[T]) Close(ctx context.Context) (left int) {
	o.mu.Lock()
	o.closed = true
	o.hurry()
	o.mu.Unlock()
	select {
	case <-o.done:
	case <-ctx.Done():
	}
	o.mu.Lock()
	left = int(o.came - o.left)
	o.mu.Unlock()
	o.end()
	o.wake()
	return left
}

// Closing reports whether Close was called: somebody waits.
func (o *Outbox[T]) Closing() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed
}

func (o *Outbox[T]) hurry() {
	if o.c.Hurry {
		o.hurries++
	}
	o.moved.Broadcast()
}

func (o *Outbox[T]) wake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.moved.Broadcast()
}
