package trace

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/observe"
)

// An Exporter sends spans. If it is an io.Closer, the tracer closes it. An Exporter must be safe for concurrent use.
type Exporter interface {
	// Export makes one attempt. An error other than *LaterError is final: the spans will not be sent again.
	Export(ctx context.Context, spans []Span) error
}

// A LaterError is a temporary error: the export should be repeated.
type LaterError struct {
	After time.Duration // earliest time of the next attempt; 0 if unspecified
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// A PartialError means that the receiver rejected some of the spans.
type PartialError struct {
	Spans int64
	Err   error
}

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// Stats counts traces.
type Stats struct {
	Kept    map[Why]int64 // traces to be exported
	Dropped map[Drop]int64
	Spans   int64 // exported
	Denied  int64 // rejected by the receiver
	Waiting int64 // bytes, approximately
}

// A Drop is the reason why a kept trace was not exported.
type Drop string

const (
	Full   Drop = "full"   // too many waited
	Denied Drop = "denied" // rejected by the receiver
	Left   Drop = "left"   // the program ended
)

var drops = [...]Drop{Full, Denied, Left}

// A queue holds stories until they are exported. It collects stories in chunks. Two workers send the chunks in order.
type queue struct {
	to      Exporter
	log     *slog.Logger
	within  time.Duration
	bytes   int64
	example func(Kept) // may be nil
	box     *outbox.Outbox[chunk]
	spare   shelf // for stories that are kept although the queue is nearly full

	held    atomic.Int64 // bytes that wait, approximately
	kept    [len(whys)]atomic.Int64
	dropped [len(drops)]atomic.Int64
	spans   atomic.Int64 // exported
	denied  atomic.Int64 // spans
	failing atomic.Bool

	mu      sync.Mutex // not held during calls of the outbox
	chunk   chunk
	packing []byte      // buffer for the latest story
	pending *time.Timer // sends the chunk
	closed  bool
}

// A chunk is a number of stories that are exported together.
type chunk struct {
	pack
	held     int64 // bytes that held counts for it
	failures int
}

const (
	chunkOf      = 512      // maximum number of stories in an export
	chunkBytes   = 32 << 10 // maximum size of the pack, unless it is a single story
	spareASecond = 100
	exporters    = 2
)

func newQueue(o *Options) *queue {
	q := &queue{to: o.To, log: o.Log, within: o.Within, bytes: o.Bytes, example: o.Kept}
	q.spare.each = spareASecond
	q.box = outbox.New(outbox.Config[chunk]{Send: q.send, Workers: exporters, Hurry: true, Dropped: func(c *chunk) { q.lose(c, 2) }})
	return q
}

// put queues a story for export if there is room. It does not block and does not retain s.
func (q *queue) put(s *story) {
	q.kept[s.why].Add(1)
	most, at := q.most(s.why), time.Duration(s.ended.UnixNano())
	if held := q.held.Load(); held > most && (held > q.bytes || !q.spare.room(at)) { // under overload nothing else is done
		q.dropped[0].Add(1)
		return
	}
	q.mu.Lock()
	full, ok := q.packs(s, most, at)
	q.mu.Unlock()
	switch {
	case !ok:
		q.dropped[0].Add(1)
	case q.example != nil:
		for i := range s.parts {
			q.example(s.parts[i].kept(s.trace))
		}
	}
	if full.stories > 0 {
		q.box.Put(full)
	}
}

// packs adds a story to the chunk if there is room. It returns a full chunk, which must be sent. The caller holds mu.
func (q *queue) packs(s *story, most int64, at time.Duration) (full chunk, ok bool) {
	words := len(q.chunk.words)
	b := q.chunk.add(q.packing[:0], s)
	if q.chunk.stories > 0 && len(q.chunk.bytes)+len(b) > chunkBytes {
		q.chunk.forget(words)
		full, words = q.seal(), 0
		b = q.chunk.add(b[:0], s)
	}
	if cap(b) <= chunkBytes {
		q.packing = b
	}
	n := int64(len(b))
	for _, w := range q.chunk.words[words:] {
		n += int64(len(w)) + int64(unsafe.Sizeof(w))
	}
	if !q.room(n, most, at) {
		q.chunk.forget(words)
		return full, false
	}
	if q.chunk.bytes == nil {
		q.chunk.bytes = make([]byte, 0, max(chunkBytes, len(b)))
	}
	q.chunk.bytes = append(q.chunk.bytes, b...)
	q.chunk.stories++
	q.chunk.held += n
	switch {
	case full.stories > 0: // the next chunk is sent after this one
	case q.chunk.stories >= chunkOf || q.closed:
		full = q.seal()
	}
	if q.chunk.stories > 0 && q.pending == nil {
		q.pending = time.AfterFunc(q.within, q.flush)
	}
	return full, true
}

// seal returns the chunk and begins another. It reallocates a block that is much too large. The caller holds mu.
func (q *queue) seal() chunk {
	c := q.chunk
	q.chunk = chunk{}
	if c.numbers = nil; cap(c.bytes)-len(c.bytes) > cap(c.bytes)/8 {
		c.bytes = append([]byte(nil), c.bytes...)
	}
	slack := int64(cap(c.bytes) - len(c.bytes))
	c.held += slack
	q.held.Add(slack)
	return c
}

// most returns how full the queue may be for a story to be taken. More important stories may use more: successful calls half of
// the bytes, refusals and errors of the caller two thirds, throttles three quarters, failures nine tenths. The rest is for 100
// stories a second of any kind, so that something is always kept.
func (q *queue) most(why int) int64 {
	switch why {
	case sampled:
		return q.bytes / 2
	case refused, rejected:
		return q.bytes / 3 * 2
	case throttled:
		return q.bytes / 4 * 3
	}
	return q.bytes / 10 * 9
}

// room reports whether n more bytes may wait, and counts them if so.
func (q *queue) room(n, most int64, at time.Duration) bool {
	held := q.held.Add(n)
	if held <= most || held <= q.bytes && q.spare.takes(at) {
		return true
	}
	q.held.Add(-n)
	return false
}

func (q *queue) flush() {
	q.mu.Lock()
	c := q.seal()
	q.pending = nil
	q.mu.Unlock()
	if c.stories > 0 {
		q.box.Put(c)
	}
}

// send makes one attempt to export a chunk, and returns the delay before the next.
func (q *queue) send(ctx context.Context, c *chunk) time.Duration {
	spans := c.spans(make([]Span, 0, 3*c.stories))
	ctx, cancel := context.WithTimeout(ctx, exporting)
	defer cancel()
	err := q.export(ctx, spans)
	later, again := errors.AsType[*LaterError](err)
	partial, some := errors.AsType[*PartialError](err)
	q.heard(err)
	switch {
	case some:
		rest := min(max(partial.Spans, 0), int64(len(spans)))
		q.denied.Add(rest)
		q.spans.Add(int64(len(spans)) - rest)
		q.held.Add(-c.held)
	case err == nil:
		q.spans.Add(int64(len(spans)))
		q.held.Add(-c.held)
	case !again:
		q.denied.Add(int64(len(spans)))
		q.lose(c, 1)
	default:
		c.failures++
		if c.failures >= attemptsAtEnd && q.box.Closing() {
			q.lose(c, 2)
			return 0
		}
		return max(later.After, backoff(c.failures))
	}
	return 0
}

const (
	exporting     = 10 * time.Second // for one attempt
	attemptsAtEnd = 3
)

// export recovers from an exporter that panics.
func (q *queue) export(ctx context.Context, spans []Span) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the exporter panicked")
		}
	}()
	return q.to.Export(ctx, spans)
}

// lose counts a chunk that will not be exported.
func (q *queue) lose(c *chunk, why int) {
	q.dropped[why].Add(int64(c.stories))
	q.held.Add(-c.held)
}

// heard logs the result of an attempt when it changes.
func (q *queue) heard(err error) {
	if was := q.failing.Swap(err != nil); q.log == nil || was == (err != nil) {
		return
	}
	if err == nil {
		q.log.Info("traces exported again")
		return
	}
	q.log.Warn("traces not exported", "error", observe.Error(err), "waiting_bytes", q.held.Load())
}

// backoff returns the delay after a number of failures. Half of it is random.
func backoff(failures int) time.Duration {
	d := min(time.Second<<min(max(failures-1, 0), 5), 30*time.Second)
	return d/2 + rand.N(d/2)
}

func (q *queue) close(ctx context.Context) int {
	before := q.dropped[2].Load()
	q.mu.Lock()
	q.closed = true
	if q.pending != nil {
		q.pending.Stop()
	}
	q.mu.Unlock()
	q.flush()
	q.box.Close(ctx)
	if c, ok := q.to.(io.Closer); ok {
		_ = c.Close() // all sends have ended
	}
	return int(q.dropped[2].Load() - before)
}

func (q *queue) stats() Stats {
	s := Stats{Kept: make(map[Why]int64, len(whys)), Dropped: make(map[Drop]int64, len(drops)), Spans: q.spans.Load(), Denied: q.denied.Load(), Waiting: q.held.Load()}
	for i, w := range whys {
		s.Kept[w] = q.kept[i].Load()
	}
	for i, d := range drops {
		s.Dropped[d] = q.dropped[i].Load()
	}
	return s
}
