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

// An Exporter sends spans away. One that is an io.Closer is closed with its tracer.
type Exporter interface {
	// Export makes one attempt. An error that is no *LaterError is final: the spans will never be taken.
	Export(ctx context.Context, spans []Span) error
}

// A LaterError says that it is worth trying again.
type LaterError struct {
	After time.Duration // not before; 0 if nobody said so
	Err   error
}

func (e *LaterError) Error() string { return e.Err.Error() }
func (e *LaterError) Unwrap() error { return e.Err }

// A PartialError says that the receiver has taken the spans but for some.
type PartialError struct {
	Spans int64
	Err   error
}

func (e *PartialError) Error() string { return e.Err.Error() }
func (e *PartialError) Unwrap() error { return e.Err }

// Stats are what has become of traces.
type Stats struct {
	Kept    map[Why]int64 // those that were to be exported
	Dropped map[Drop]int64
	Spans   int64 // that were exported
	Denied  int64 // spans that the receiver would not have
	Waiting int64 // bytes, about
}

// A Drop is why a trace that was kept was not exported.
type Drop string

const (
	Full   Drop = "full"   // too many waited
	Denied Drop = "denied" // the receiver would not have it
	Left   Drop = "left"   // the program ended
)

// drops are all there are.
var drops = [...]Drop{Full, Denied, Left}

// A queue has what is to be exported. What comes is gathered to chunks, which are sent one after the other, by two at
// once.
type queue struct {
	to      Exporter
	log     *slog.Logger
	within  time.Duration
	bytes   int64
	example func(Kept) // nil for nobody
	box     *outbox.Outbox[chunk]
	spare   shelf // of what is kept although there is hardly any room

	held    atomic.Int64 // bytes that wait, about
	kept    [len(whys)]atomic.Int64
	dropped [len(drops)]atomic.Int64
	spans   atomic.Int64 // exported
	denied  atomic.Int64 // spans
	failing atomic.Bool

	mu      sync.Mutex // nothing is asked of the outbox under it
	chunk   chunk
	packing []byte      // the latest story
	pending *time.Timer // that sends the chunk
	closed  bool
}

// A chunk is some stories on their way.
type chunk struct {
	pack
	held     int64 // bytes that are counted for it
	failures int
}

const (
	chunkOf      = 512      // stories of one export, at most
	chunkBytes   = 32 << 10 // of their pack, unless it is one story
	spareASecond = 100
	exporters    = 2
)

func newQueue(o *Options) *queue {
	q := &queue{to: o.To, log: o.Log, within: o.Within, bytes: o.Bytes, example: o.Kept}
	q.spare.each = spareASecond
	q.box = outbox.New(outbox.Config[chunk]{Send: q.send, Workers: exporters, Hurry: true, Dropped: func(c *chunk) { q.lose(c, 2) }})
	return q
}

// put has a story exported, if there is room. Nothing waits for it, and nobody keeps it.
func (q *queue) put(s *story) {
	q.kept[s.why].Add(1)
	most, at := q.most(s.why), time.Duration(s.ended.UnixNano())
	if held := q.held.Load(); held > most && (held > q.bytes || !q.spare.room(at)) { // in a storm nothing more is done
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

// packs adds a story to the chunk, if there is room, under the lock. A chunk that is full is to be sent.
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
	case full.stories > 0: // the next is sent after this one
	case q.chunk.stories >= chunkOf || q.closed:
		full = q.seal()
	}
	if q.chunk.stories > 0 && q.pending == nil {
		q.pending = time.AfterFunc(q.within, q.flush)
	}
	return full, true
}

// seal takes the chunk away, under the lock. A block that is left half empty is made as small as it can be.
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

// most is how much may wait for a story to find room. Where little is left there is some for what is more
// important: what went well may fill a half, what was refused, or the caller's fault, two thirds, throttles three
// quarters and failures nine tenths. The rest is for a hundred a second of all, so that something is always kept.
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

// room reports whether a story of n bytes may wait, too, and counts it if so.
func (q *queue) room(n, most int64, at time.Duration) bool {
	held := q.held.Add(n)
	if held <= most || held <= q.bytes && q.spare.takes(at) {
		return true
	}
	q.held.Add(-n)
	return false
}

// flush sends what has come so far.
func (q *queue) flush() {
	q.mu.Lock()
	c := q.seal()
	q.pending = nil
	q.mu.Unlock()
	if c.stories > 0 {
		q.box.Put(c)
	}
}

// send makes one attempt with a chunk, and says when to make another.
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
	exporting     = 10 * time.Second // of one attempt
	attemptsAtEnd = 3
)

// export survives an exporter that panics.
func (q *queue) export(ctx context.Context, spans []Span) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("the exporter panicked")
		}
	}()
	return q.to.Export(ctx, spans)
}

// lose counts what will never be exported.
func (q *queue) lose(c *chunk, why int) {
	q.dropped[why].Add(int64(c.stories))
	q.held.Add(-c.held)
}

// heard logs how an attempt went, when that changes.
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

// backoff is how long to wait after so many failures: half of it is left to chance.
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
		_ = c.Close() // nothing is sent any more
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
