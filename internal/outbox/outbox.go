// Package outbox sends items in the background, so that their producers do not wait: log lines, messages, metrics, writes to a
// store.
package outbox

import (
	"context"
	"sync"
	"time"
)

// A Config specifies how to send items and how many may wait.
type Config[T any] struct {
	// Send makes one attempt to send x. It returns 0 if x is complete, or the time until the next attempt. x then keeps its
	// place with the changes by Send. ctx ends when Close stops waiting.
	Send func(ctx context.Context, x *T) (again time.Duration)

	Most    int              // maximum number of items, including those being sent; 0 means no bound
	Size    func(x *T) int64 // must not change while x is held; nil means that sizes do not matter
	Bytes   int64            // maximum sum of Size, likewise; 0 means no bound
	Workers int              // sending goroutines; 0 means 1, which keeps the order

	// Newest keeps new items if there is no room and drops the oldest waiting ones. Otherwise new items are dropped.
	Newest bool

	// Hurry makes Flush and Close retry immediately.
	Hurry bool

	// Dropped, unless nil, receives items that will not be sent: items without room, items that made room, and items that
	// remained when Close stopped waiting. It must not use the Outbox.
	Dropped func(x *T)
}

// An Outbox holds items until they are sent. Create one with New and end it with Close. It is safe for concurrent use.
type Outbox[T any] struct {
	c    Config[T]
	ctx  context.Context
	end  context.CancelFunc
	done chan struct{} // closed when all workers have ended

	mu      sync.Mutex
	moved   *sync.Cond // signals an item that arrived or left, or a request
	waiting []T
	sending int
	bytes   int64  // of waiting items
	out     int64  // of items that are being sent
	came    uint64 // number of accepted items
	left    uint64 // number of items that were sent or dropped
	hurries uint64
	closed  bool
}

// New returns an outbox and starts its workers.
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

// Put queues x. It does not wait. It reports whether x was accepted.
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

// room reports whether an item of n bytes may also wait.
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

// Resize changes the maximum size. Waiting items stay.
func (o *Outbox[T]) Resize(bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.c.Bytes = bytes
}

// Waiting returns the number of waiting items and the sum of their sizes, without items that are being sent.
func (o *Outbox[T]) Waiting() (n int, bytes int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting), o.bytes
}

// Flush waits until all accepted items are sent or dropped, or ctx ends. It reports whether all are.
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

// Close accepts no more items and waits until all are sent or ctx ends. Remaining items are dropped. It returns the number of
// items that were not complete, including those being sent.
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

// Closing reports whether Close was called.
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
