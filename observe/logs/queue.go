package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
)

// A Queue stands between a logger and a writer that may block: a pipe that
// nobody reads, a disk that hangs. What is written to it waits in memory, and a
// goroutine of its own writes it on, line by line and in order. When the memory
// is full lines are dropped, and a line says how many:
//
//	{"time":"…","level":"WARN","msg":"log lines dropped","dropped":17}
//
// Make one with NewQueue. It is safe for concurrent use.
type Queue struct {
	to     io.Writer
	most   int
	notice *slog.Logger  // writes into waiting
	done   chan struct{} // closed when all is written after Close

	mu      sync.Mutex
	more    *sync.Cond
	waiting bytes.Buffer // whole lines
	dropped int          // since the last notice
	closed  bool
}

// QueueSize is how many bytes of lines wait at most.
const QueueSize = 1 << 20

// NewQueue makes a queue in front of a writer, and starts it. Close ends it.
func NewQueue(to io.Writer) *Queue { return newQueue(to, QueueSize) }

func newQueue(to io.Writer, most int) *Queue {
	q := &Queue{to: to, most: most, done: make(chan struct{})}
	q.more = sync.NewCond(&q.mu)
	q.notice = slog.New(slog.NewJSONHandler(&q.waiting, nil))
	go q.run()
	return q
}

// Write takes one or more whole lines. It never blocks, and never fails.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.room(len(lines)) {
		q.dropped++
	} else {
		q.tell()
		q.waiting.Write(lines)
	}
	q.more.Signal()
	return len(lines), nil
}

// room reports whether so many bytes may wait too. Once it was full nothing is
// taken until half of it is free, or else every other line would be a notice.
func (q *Queue) room(n int) bool {
	if q.closed || q.dropped > 0 && q.waiting.Len() > q.most/2 {
		return false
	}
	return q.waiting.Len()+n <= q.most
}

// tell adds the notice of what was dropped where it would have stood.
func (q *Queue) tell() {
	if q.dropped > 0 {
		q.notice.Warn("log lines dropped", "dropped", q.dropped)
		q.dropped = 0
	}
}

// Close writes what waits, and ends the queue: lines that come later are
// dropped. If ctx ends first, the rest is lost, and the error says why and how
// much that is.
func (q *Queue) Close(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.more.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
		return nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return fmt.Errorf("write the log: %w; %d bytes are lost", context.Cause(ctx), q.waiting.Len())
}

// run writes until the queue is closed and empty.
func (q *Queue) run() {
	defer close(q.done)
	for line, ok := q.next(nil); ok; line, ok = q.next(line[:0]) {
		_, _ = q.to.Write(line) // there is nobody to tell
	}
}

// next appends the first line that waits to line. If there is none it waits for
// one, and reports false when none will come.
func (q *Queue) next(line []byte) (_ []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.waiting.Len() == 0 && q.dropped == 0 && !q.closed {
		q.more.Wait()
	}
	if q.waiting.Len() == 0 {
		q.tell()
	}
	first, _, cut := bytes.Cut(q.waiting.Bytes(), []byte{'\n'})
	n := len(first)
	if cut {
		n++
	}
	return append(line, q.waiting.Next(n)...), n > 0
}
