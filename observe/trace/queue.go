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

	held    atomic.Int64 // bytes that wait
	kept    [len(whys)]atomic.Int64
	dropped [len(drops)]atomic.Int64
	spans   atomic.Int64 // exported
	denied  atomic.Int64 // spans
	failing atomic.Bool

	mu      sync.Mutex // nothing is asked of the outbox under it
	chunk   chunk
	pending *time.Timer // that sends it
	closed  bool
}

// A chunk is some stories on their way.
type chunk struct {
	stories  []*story
	bytes    int64
	failures int
}

const (
	chunkOf      = 256 // stories of one export
	spareASecond = 100
	exporters    = 2
)

func newQueue(o *Options) *queue {
	q := &queue{to: o.To, log: o.Log, within: o.Within, bytes: o.Bytes, example: o.Kept}
	q.spare.each = spareASecond
	q.box = outbox.New(outbox.Config[chunk]{Send: q.send, Workers: exporters, Hurry: true, Dropped: func(c *chunk) { q.lose(c, 2) }})
	return q
}

// put has a story exported, if there is room. Nothing waits for it.
func (q *queue) put(s *story) {
	q.kept[s.why].Add(1)
	n := s.size()
	if !q.room(s, n) {
		q.dropped[0].Add(1)
		return
	}
	if q.example != nil {
		for i := range s.parts {
			q.example(s.parts[i].kept(s.trace))
		}
	}
	q.mu.Lock()
	if q.chunk.stories == nil {
		q.chunk.stories = make([]*story, 0, chunkOf)
	}
	q.chunk.stories = append(q.chunk.stories, s)
	q.chunk.bytes += n
	var full chunk
	switch {
	case len(q.chunk.stories) >= chunkOf || q.closed:
		full, q.chunk = q.chunk, chunk{}
	case q.pending == nil:
		q.pending = time.AfterFunc(q.within, q.flush)
	}
	q.mu.Unlock()
	if full.stories != nil {
		q.box.Put(full)
	}
}

// room reports whether a story may wait, too, and counts it if so. Where little is left there is some for what is more
// important: what went well may fill a half, what was refused, or the caller's fault, two thirds, throttles three
// quarters and failures nine tenths. The rest is for a hundred a second of all, so that something is always kept.
func (q *queue) room(s *story, n int64) bool {
	most := q.bytes / 10 * 9
	switch s.why {
	case sampled:
		most = q.bytes / 2
	case refused, rejected:
		most = q.bytes / 3 * 2
	case throttled:
		most = q.bytes / 4 * 3
	}
	held := q.held.Add(n)
	if held <= most || held <= q.bytes && q.spare.takes(time.Duration(s.ended.UnixNano())) {
		return true
	}
	q.held.Add(-n)
	return false
}

// flush sends what has come so far.
func (q *queue) flush() {
	q.mu.Lock()
	c := q.chunk
	q.chunk, q.pending = chunk{}, nil
	q.mu.Unlock()
	if c.stories != nil {
		q.box.Put(c)
	}
}

// send makes one attempt with a chunk, and says when to make another.
func (q *queue) send(ctx context.Context, c *chunk) time.Duration {
	spans := make([]Span, 0, 3*len(c.stories))
	for _, s := range c.stories {
		spans = s.spans(spans)
	}
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
		q.held.Add(-c.bytes)
	case err == nil:
		q.spans.Add(int64(len(spans)))
		q.held.Add(-c.bytes)
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
	q.dropped[why].Add(int64(len(c.stories)))
	q.held.Add(-c.bytes)
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
