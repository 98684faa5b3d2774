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

// Live pages: one look a second serves them all, and each frame is written and packed once, whoever watches.
const (
	mostEyes = 256             // viewers at once
	renewed  = time.Second     // between two frames
	patience = 5 * time.Second // for a viewer to read one
)

// A part is a piece of a page that is renewed by itself: an element's id, and what is inside it.
type part struct{ id, text string }

// A stream is the frames for one filter.
type stream struct {
	filter string
	eyes   int // viewers; guarded by Board.mu
	now    atomic.Pointer[frame]
}

// A frame is a page at an instant, as events: in full, and as what has changed since the frame before. It is not changed any more.
type frame struct {
	n             uint64 // from 1; 0 of the one that nobody sees, as it was before the first
	parts         []part
	full, changed func() event
	next          chan struct{} // closed when the next one is there, or none will be
}

// An event is the bytes of one, as they are, and as a piece of a gzip stream that refers to nothing before it.
type event struct {
	plain  []byte
	packed func() []byte
}

// live sends what changes of the page each second, until the viewer leaves, does not read, or may not look any more.
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

// since is what a viewer is sent who has seen a frame: the changes if that was the one before.
func (f *frame) since(seen uint64) event {
	if seen != 0 && seen == f.n-1 {
		return f.changed()
	}
	return f.full()
}

// enter makes a viewer one of a stream; nil if there is no room.
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

// watched are the streams that have viewers.
func (b *Board) watched() (all []*stream) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.streams {
		all = append(all, s)
	}
	return all
}

// renew makes frames until ctx ends, while anybody watches.
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

// frames makes the next frame of each stream.
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

// count counts deliveries while anybody watches, until ctx ends.
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

// A tally is how deliveries stood when they were counted last, for pages that must not wait for a store.
type tally struct {
	counting chan struct{} // has room for the one who counts
	now      atomic.Pointer[counted]
}

type counted struct {
	at time.Time
	*status.Deliveries
}

// last is that; nil if nobody has counted yet.
func (t *tally) last() *status.Deliveries {
	if c := t.now.Load(); c != nil {
		return c.Deliveries
	}
	return nil
}

// count counts, unless that was done within a second; and also if who asked leaves meanwhile, as others wait for it.
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

// put has a stream's viewers go on to a frame.
func (s *stream) put(parts []part) {
	last := s.now.Load()
	f := &frame{n: last.n + 1, parts: parts, next: make(chan struct{})}
	f.full = sync.OnceValue(func() event { return f.event(nil) })
	before := last.parts // not last itself: frames would keep all before them
	f.changed = sync.OnceValue(func() event { return f.event(before) })
	s.now.Store(f)
	close(last.next)
}

// event is what changed since other parts. Each line is the id of a part, a tab, and what is inside it; one without an id is
// the order of rows. A line that is a dot says that all is as it was.
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

// oneLine makes a text one line, as an event wants it.
var oneLine = strings.NewReplacer("\n", " ", "\r", " ")

// rowsOf is the order of rows.
func rowsOf(parts []part) string {
	var ids []string
	for _, p := range parts {
		if strings.HasPrefix(p.id, rowID) {
			ids = append(ids, p.id)
		}
	}
	return strings.Join(ids, " ")
}

// gzipHead begins a gzip stream (RFC 1952) of which nothing is said.
var gzipHead = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// packers are kept, as they are large.
var packers = sync.Pool{New: func() any {
	z, _ := flate.NewWriter(nil, flate.DefaultCompression) // the level is one that there is
	return z
}}

// pack packs a text as blocks that refer to nothing before them, and that another may follow.
func pack(text []byte) []byte {
	var b bytes.Buffer
	z := packers.Get().(*flate.Writer)
	defer packers.Put(z)
	z.Reset(&b)
	_, _ = z.Write(text)
	_ = z.Flush()
	return b.Bytes()
}
