package cache

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/internal/outbox"
)

// writers is the number of goroutines that write to the store. Two are enough: one compresses while the other waits.
const writers = 2

type write struct {
	key  Key
	keep time.Duration
	Entry
	size int64
}

func (s *shared) newQueue(o Options) *outbox.Outbox[write] {
	return outbox.New(outbox.Config[write]{
		Most: o.Queue + writers, Bytes: o.QueueBytes, Workers: writers, Send: s.put,
		Size:    func(w *write) int64 { return w.size },
		Dropped: func(*write) { s.n.dropped.Add(1) },
	})
}

func (s *shared) write(k Key, e Entry, keep time.Duration) {
	s.queue.Put(write{key: k, keep: keep, Entry: e, size: int64(e.size())})
}

func (s *shared) put(ctx context.Context, w *write) (again time.Duration) {
	sum := w.key.Sum()
	value := encode(sum, &w.Entry)
	if len(value) > s.blobs.Most() {
		return 0 // too large for the store; memory has it
	}
	u, ok := s.use("put")
	if !ok {
		return 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.o.WriteTimeout, errSlow)
	defer cancel()
	late := context.AfterFunc(ctx, func() { u.end(context.Cause(ctx)) })
	err := s.blobs.Put(ctx, sum[:], value, w.keep)
	late()
	u.end(why(ctx, err))
	return 0
}

// close allows WriteTimeout for pending writes, and waits for them and for running reads.
func (s *shared) close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), s.o.WriteTimeout)
	defer cancel()
	s.queue.Close(ctx)
	s.queue.Close(context.Background()) // running writes have been canceled
	s.wg.Wait()
}
