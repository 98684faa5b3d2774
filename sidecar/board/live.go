package board

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Live pages: each is given the same bytes as all others with its filter.
const (
	mostEyes  = 256             // viewers at once
	renewed   = time.Second     // between two frames
	patience  = 5 * time.Second // for a viewer to read one
	mostViews = 32              // filters with frames of their own
)

// A frame is the inside of the page at an instant, as an event.
type frame struct {
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

// frame is that of now: whoever needs it first makes it.
func (b *Board) frame(r *http.Request, filter string) []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.frames[filter]
	if f != nil && time.Since(f.at) < renewed*9/10 {
		return f.text
	}
	if f == nil && len(b.frames) >= mostViews {
		clear(b.frames)
	}
	out := page{token: b.token(time.Now())}
	out.inside(b.look(r.Context(), filter))
	text := "id: " + strconv.FormatInt(time.Now().Unix(), 10) + "\ndata: " + strings.ReplaceAll(out.String(), "\n", "\ndata: ") + "\n\n"
	b.frames[filter] = &frame{time.Now(), []byte(text)}
	return b.frames[filter].text
}
