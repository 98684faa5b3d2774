package logs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/outbox"
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
	to   io.Writer
	most int64
	box  *outbox.Outbox[[]byte] // each is one or more whole lines

	mu      sync.Mutex
	dropped int // since the last notice
}

// queueSize is how many bytes of lines wait at most.
const queueSize = 1 << 20

// NewQueue makes a queue in front of a writer, and starts it. Close ends it.
func NewQueue(to io.Writer) *Queue { return newQueue(to, queueSize) }

func newQueue(to io.Writer, most int) *Queue {
	q := &Queue{to: to, most: int64(most)}
	q.box = outbox.New(outbox.Config[[]byte]{
		Send: q.write,
		Size: func(lines *[]byte) int64 { return int64(len(*lines)) },
	})
	return q
}

// Write takes one or more whole lines. It never blocks, and never fails.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, bytes := q.box.Waiting()
	if !q.room(bytes, int64(len(lines))) {
		if q.dropped++; waiting == 0 {
			q.tell() // no line follows that it could stand before
		}
		return len(lines), nil
	}
	q.tell()
	if !q.box.Put(append([]byte(nil), lines...)) {
		q.dropped++
	}
	return len(lines), nil
}

// room reports whether so many bytes may wait too. Once it was full nothing is
// taken until half of it is free, or else every other line would be a notice.
func (q *Queue) room(waiting, n int64) bool {
	if q.dropped > 0 && waiting > q.most/2 {
		return false
	}
	return waiting+n <= q.most
}

// tell adds the notice of what was dropped where it would have stood; mu is held.
func (q *Queue) tell() {
	if q.dropped > 0 && q.box.Put(notice(q.dropped)) {
		q.dropped = 0
	}
}

func notice(dropped int) []byte {
	var line bytes.Buffer
	slog.New(slog.NewJSONHandler(&line, nil)).Warn("log lines dropped", "dropped", dropped)
	return line.Bytes()
}

// write writes line by line, so that those of several processes do not mix.
func (q *Queue) write(_ context.Context, lines *[]byte) time.Duration {
	for line := range bytes.Lines(*lines) {
		_, _ = q.to.Write(line) // there is nobody to tell
	}
	if n := q.untold(); n > 0 {
		_, _ = q.to.Write(notice(n))
	}
	return 0
}

// untold is how many lines were dropped since the last notice, if no line waits before which
// the next would stand.
func (q *Queue) untold() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting, _ := q.box.Waiting(); waiting == 0 {
		n, q.dropped = q.dropped, 0
	}
	return n
}

// Close writes what waits, and ends the queue: lines that come later are
// dropped. If ctx ends first, the rest is lost, and the error says why and how
// much that is.
func (q *Queue) Close(ctx context.Context) error {
	if q.box.Close(ctx) == 0 {
		return nil
	}
	_, bytes := q.box.Waiting()
	return fmt.Errorf("write the log: %w; %d bytes are lost", context.Cause(ctx), bytes)
}
