package board

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/sidecar/status"
)

// Live pages: one view per second serves all of them, and each frame is rendered and compressed once for all viewers.
const (
	mostEyes = 256             // viewers at a time
	renewed  = time.Second     // between two frames
	patience = 5 * time.Second // for a viewer to read a frame
)

// A part is a section of a page that is updated separately: an element's id, and its content.
type part struct{ id, text string }

// A stream contains the frames for one filter.
type stream struct {
	filter string
	eyes   int // viewers; guarded by Board.mu
	now    atomic.Pointer[frame]
}

// A frame is a page at an instant, as events: complete, and as the changes since the frame before. It is immutable.
type frame struct {
	n             uint64 // from 1; 0 is a placeholder before the first frame, which no viewer gets
	parts         []part
	full, changed func() event
	next          chan struct{} // closed when the next frame is there, or there will be none
}

// An event contains the bytes of an event, plain and as an independent section of a gzip stream.
type event struct {
	plain  []byte
	packed func() []byte
}

// live sends the changes of the page each second, until the viewer leaves, does not read, or loses its access.
func (b *Board) live(w http.ResponseWriter, r *http.Request) {
	s := b.enter(filterOf(r))
	if s == nil {
		http.Error(w, fmt.Sprintf("%d live pages are open, which is the maximum; reload this page manually", mostEyes), http.StatusServiceUnavailable)
		return
	}
	defer b.leave(s)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	w.Header().Set("Vary", "Accept-Encoding")
	packed := strings.Contains(r.Header.Get("Accept-Encoding"), "gzip")
	to := http.NewResponseController(w)
	write := func(text []byte) bool {
		if to.SetWriteDeadline(time.Now().Add(patience)) != nil {
			return false
		}
		_, err := w.Write(text)
		return err == nil && to.Flush() == nil
	}
	var head []byte
	if packed {
		w.Header().Set("Content-Encoding", "gzip")
		head = gzipHead
	}
	if !write(head) {
		return
	}
	for seen := uint64(0); ; {
		f := s.now.Load()
		if f.n != seen {
			e := f.since(seen)
			text := e.plain
			if packed {
				text = e.packed()
			}
			if !write(text) {
				return
			}
			seen = f.n
		}
		if b.ended.Load() {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-f.next:
		}
		if b.Page.Draining.Load() || b.Page.Admits(r) != nil {
			return
		}
	}
}

// since returns the event for a viewer that has the frame seen: the changes if that was the one before.
func (f *frame) since(seen uint64) event {
	if seen != 0 && seen == f.n-1 {
		return f.changed()
	}
	return f.full()
}

// enter adds a viewer to a stream. It returns nil if there is no room.
func (b *Board) enter(filter string) *stream {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eyes == mostEyes {
		return nil
	}
	b.eyes++
	s := b.streams[filter]
	if s == nil {
		s = &stream{filter: filter}
		s.now.Store(&frame{next: make(chan struct{})})
		b.streams[filter] = s
	}
	s.eyes++
	return s
}

func (b *Board) leave(s *stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.eyes--
	if s.eyes--; s.eyes == 0 {
		delete(b.streams, s.filter)
	}
}

// watched returns the streams that have viewers.
func (b *Board) watched() (all []*stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.streams {
		all = append(all, s)
	}
	return all
}

// renew creates frames until ctx ends, while there are viewers.
func (b *Board) renew(ctx context.Context) {
	t := time.NewTicker(renewed)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			b.ended.Store(true)
			for _, s := range b.watched() {
				close(s.now.Load().next)
			}
			return
		case <-t.C:
			b.frames()
		}
	}
}

// frames creates the next frame of each stream.
func (b *Board) frames() {
	all := b.watched()
	if len(all) == 0 {
		return
	}
	v := b.again()
	drawn := make(map[*Row]string)
	for _, s := range all {
		s.put(v.only(s.filter, "").parts(drawn))
	}
}

// count counts deliveries until ctx ends, while there are viewers.
func (b *Board) count(ctx context.Context) {
	t := time.NewTicker(renewed)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			if len(b.watched()) > 0 {
				b.letters.count(ctx, b.Page)
			}
		}
	}
}

// A tally contains the last counts of deliveries, for pages that must not wait for a store.
type tally struct {
	counting chan struct{} // a semaphore for one counting goroutine
	now      atomic.Pointer[counted]
}

type counted struct {
	at time.Time
	*status.Deliveries
}

// last returns the last counts; nil if there are none yet.
func (t *tally) last() *status.Deliveries {
	if c := t.now.Load(); c != nil {
		return c.Deliveries
	}
	return nil
}

// count counts deliveries, unless that was done within a second. It completes even if its caller leaves meanwhile,
// because other callers wait for it.
func (t *tally) count(ctx context.Context, p *status.Page) {
	select {
	case t.counting <- struct{}{}:
		defer func() { <-t.counting }()
	case <-ctx.Done():
		return
	}
	if c := t.now.Load(); c == nil || time.Since(c.at) >= renewed {
		t.now.Store(&counted{time.Now(), p.Counted(context.WithoutCancel(ctx))})
	}
}

// put publishes the next frame to a stream's viewers.
func (s *stream) put(parts []part) {
	last := s.now.Load()
	f := &frame{n: last.n + 1, parts: parts, next: make(chan struct{})}
	f.full = sync.OnceValue(func() event { return f.event(nil) })
	before := last.parts // not last itself, which would keep all frames before it in memory
	f.changed = sync.OnceValue(func() event { return f.event(before) })
	s.now.Store(f)
	close(last.next)
}

// event returns the changes since other parts. Each line contains the id of a part, a tab, and its content. A line
// without an id contains the order of rows. A line with only a dot means that nothing has changed.
func (f *frame) event(before []part) event {
	old := make(map[string]string, len(before))
	for _, p := range before {
		old[p.id] = p.text
	}
	var b bytes.Buffer
	b.WriteString("id: " + strconv.FormatUint(f.n, 10) + "\ndata: .\n")
	for _, p := range f.parts {
		if text, known := old[p.id]; !known || text != p.text {
			b.WriteString("data: " + p.id + "\t" + oneLine.Replace(p.text) + "\n")
		}
	}
	if order := rowsOf(f.parts); before == nil || order != rowsOf(before) {
		b.WriteString("data: \t" + order + "\n")
	}
	b.WriteString("\n")
	e := event{plain: b.Bytes()}
	e.packed = sync.OnceValue(func() []byte { return pack(e.plain) })
	return e
}

// oneLine removes line breaks, which an event's data must not contain.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// rowsOf returns the order of rows.
func rowsOf(parts []part) string {
	var ids []string
	for _, p := range parts {
		if strings.HasPrefix(p.id, rowID) {
			ids = append(ids, p.id)
		}
	}
	return strings.Join(ids, " ")
}

// gzipHead is the header of a gzip stream (RFC 1952) without metadata.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// packers are reused because they are large.
var packers = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(nil, flate.DefaultCompression) // the level is valid
	return z
}}

// pack compresses a text to independent blocks, which other blocks may follow.
func pack(text []byte) []byte {
	var b bytes.Buffer
	z := packers.Get().(*flate.Writer)
	defer packers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(text)
	_ = z.Flush()
	return b.Bytes()
}
