package board

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Live pages: each is given the same bytes as all others with its filter.
const (
	mostEyes  = 256             // viewers at once
	renewed   = time.Second     // between two frames
	patience  = 5 * time.Second // for a viewer to read one
	mostViews = 32              // filters with frames of their own
)

// A frame is the inside of the page at an instant, as an event. One viewer at a time makes it, who may have to wait for a store.
type frame struct {
	mu   sync.Mutex
	at   time.Time
	text []byte
}

// live sends the inside of the page each second, until the viewer leaves or does not read.
func (b *Board) live(w http.ResponseWriter, r *http.Request) {
	if !b.enter() {
		http.Error(w, fmt.Sprintf("%d pages are open already; this one can be loaded again by hand", mostEyes), http.StatusServiceUnavailable)
		return
	}
	defer b.leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	to, tick := http.NewResponseController(w), time.NewTicker(renewed)
	defer tick.Stop()
	for filter := filterOf(r); ; {
		text := b.frame(r, filter)
		if to.SetWriteDeadline(time.Now().Add(patience)) != nil {
			return
		}
		if _, err := w.Write(text); err != nil || to.Flush() != nil || b.Page.Draining.Load() {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

func (b *Board) enter() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eyes == mostEyes {
		return false
	}
	b.eyes++
	return true
}

func (b *Board) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.eyes--; b.eyes == 0 {
		clear(b.frames)
	}
}

// frame is that of now: the first viewer who needs it makes it for all, and also if it leaves meanwhile.
func (b *Board) frame(r *http.Request, filter string) []byte {
	f := b.place(filter)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.text != nil && time.Since(f.at) < renewed*9/10 {
		return f.text
	}
	f.at = time.Now()
	out := page{token: b.token(f.at)}
	out.inside(b.look(context.WithoutCancel(r.Context()), filter))
	f.text = []byte("id: " + strconv.FormatInt(f.at.Unix(), 10) + "\ndata: " + strings.ReplaceAll(out.String(), "\n", "\ndata: ") + "\n\n")
	return f.text
}

// place is where the frames of a filter are made.
func (b *Board) place(filter string) *frame {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frames[filter]
	if f == nil {
		if len(b.frames) >= mostViews {
			clear(b.frames)
		}
		f = new(frame)
		b.frames[filter] = f
	}
	return f
}
