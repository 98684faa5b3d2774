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

// A Queue decouples a logger from a writer that can block, such as a pipe without a reader or a disk that hangs. Lines wait in
// memory, and a goroutine writes them in order. When the memory is full, lines are dropped, and a line reports their number:
//
//	{"time":"…","level":"WARN","msg":"log lines dropped","dropped":17}
//
// Create one with NewQueue. It is safe for concurrent use.
type Queue struct {
	to   io.Writer
	most int64
	box  *outbox.Outbox[[]byte] // each element is one or more complete lines

	mu      sync.Mutex
	dropped int // since the last notice
}

// queueSize is the maximum number of bytes that wait.
const queueSize = 1 << 20

// NewQueue returns a running queue in front of a writer. Close ends it.
func NewQueue(to io.Writer) *Queue { return newQueue(to, queueSize) }

func newQueue(to io.Writer, most int) *Queue {
	q := &Queue{to: to, most: int64(most)}
	q.box = outbox.New(outbox.Config[[]byte]{
		Send: q.write,
		Size: func(lines *[]byte) int64 { return int64(len(*lines)) },
	})
	return q
}

// Write queues one or more complete lines. It never blocks and never fails.
func (q *Queue) Write(lines []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, bytes := q.box.Waiting()
	if !q.room(bytes, int64(len(lines))) {
		if q.dropped++; waiting == 0 {
			q.tell() // no line waits that the notice could precede
		}
		return len(lines), nil
	}
	q.tell()
	if !q.box.Put(append([]byte(nil), lines...)) {
		q.dropped++
	}
	return len(lines), nil
}

// room reports whether n more bytes may wait. Once the queue was full, it takes nothing until half of it is free. Otherwise every
// other line would be a notice.
func (q *Queue) room(waiting, n int64) bool {
	if q.dropped > 0 && waiting > q.most/2 {
		return false
	}
	return waiting+n <= q.most
}

// tell queues the notice about dropped lines, in their place. The caller holds mu.
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

// write writes each line separately, so that lines of several processes do not mix.
func (q *Queue) write(_ context.Context, lines *[]byte) time.Duration {
	for line := range bytes.Lines(*lines) {
		_, _ = q.to.Write(line) // an error cannot be reported
	}
	if n := q.untold(); n > 0 {
		_, _ = q.to.Write(notice(n))
	}
	return 0
}

// untold returns and resets the number of lines dropped since the last notice. It returns 0 while lines wait, because the next
// queued line will be preceded by a notice.
func (q *Queue) untold() (n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if waiting, _ := q.box.Waiting(); waiting == 0 {
		n, q.dropped = q.dropped, 0
	}
	return n
}

// Close writes the lines that wait and ends the queue. Later lines are dropped. If ctx ends first, the rest is lost, and the
// error has the reason and the number of bytes.
func (q *Queue) Close(ctx context.Context) error {
	if q.box.Close(ctx) == 0 {
		return nil
	}
	_, bytes := q.box.Waiting()
	return fmt.Errorf("write the log: %w; %d bytes are lost", context.Cause(ctx), bytes)
}
