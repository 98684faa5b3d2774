package httpx

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// errHeaderTimeout is why an attempt ends whose answer did not begin in time, counted
// from the end of its request. It is a deadline error to whoever asks.
var errHeaderTimeout error = stalled("timed out waiting for the response headers")

// A headerTimer ends an attempt whose answer does not begin in time.
type headerTimer struct {
	end func()

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// awaitHeaders is ctx for an attempt whose answer has to begin within d after its request
// was written.
func awaitHeaders(ctx context.Context, d time.Duration, end func()) (context.Context, *headerTimer) {
	h := &headerTimer{end: end}
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { h.wrote(d) }}), h
}

func (h *headerTimer) wrote(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.timer == nil && !h.over { // a transport may write a request twice, on another connection
		h.timer = time.AfterFunc(d, h.end)
	}
}

// stop ends the wait: the headers are there, or never will be.
func (h *headerTimer) stop() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.over = true
	if h.timer != nil {
		h.timer.Stop()
	}
}
