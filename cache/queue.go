package cache

import (
	"context"
	"sync"
	"time"
)

// writers write to the store. Two are enough: they pack what they write, and one packs
// while the other waits.
const writers = 2

// A queue holds writes until a writer has time.
type queue struct {
	mu     sync.Mutex
	ch     chan write
	closed bool
	bytes  int64
	most   int64

	ctx    context.Context // of writes, until Close has waited long enough
	cancel context.CancelCauseFunc
}

type write struct {
	key  Key
	keep time.Duration
	Entry
	size int64
}

func (q *queue) begin(o Options) {
	q.ch, q.most = make(chan write, o.Queue), o.QueueBytes
	q.ctx, q.cancel = context.WithCancelCause(context.Background())
}

// add reports whether there was room.
func (q *queue) add(w write) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.bytes+w.size > q.most {
		return false
	}
	select {
	case q.ch <- w:
		q.bytes += w.size
		return true
	default:
		return false
	}
}

func (q *queue) done(w write) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.bytes -= w.size
}

// resize changes how many bytes may wait.
func (q *queue) resize(most int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.most = most
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.closed = true
		close(q.ch)
	}
}

// write has an entry written, soon, unless there is no room.
func (s *shared) write(k Key, e Entry, keep time.Duration) {
	if !s.queue.add(write{key: k, keep: keep, Entry: e, size: int64(e.size())}) {
		s.n.dropped.Add(1)
	}
}

// drain writes until the queue is closed and empty.
func (s *shared) drain() {
	for w := range s.queue.ch {
		s.put(w)
		s.queue.done(w)
	}
}

func (s *shared) put(w write) {
	if s.queue.ctx.Err() != nil {
		s.n.dropped.Add(1)
		return
	}
	sum := w.key.Sum()
	value := encode(sum, &w.Entry)
	if len(value) > s.blobs.Most() {
		return // memory has it
	}
	u, ok := s.use("put")
	if !ok {
		return
	}
	ctx, cancel := context.WithTimeoutCause(s.queue.ctx, s.o.WriteTimeout, errSlow)
	defer cancel()
	late := context.AfterFunc(ctx, func() { u.end(context.Cause(ctx)) })
	err := s.blobs.Put(ctx, sum[:], value, w.keep)
	late()
	u.end(why(ctx, err))
}

// close gives the writes that wait a while, and waits for them and for the reads.
func (s *shared) close() {
	s.queue.close()
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	stop := time.AfterFunc(s.o.WriteTimeout, func() { s.queue.cancel(errLeft) })
	defer stop.Stop()
	s.wg.Wait()
	s.queue.cancel(errLeft)
}
