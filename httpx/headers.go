package httpx

import (
	"context"
	"net/http/httptrace"
	"sync"
	"time"
)

// errHeaderTimeout ends an attempt whose response did not begin in time after its request was sent. It matches
// context.DeadlineExceeded.
var errHeaderTimeout error = stalled("timed out waiting for the response headers")

// A headerTimer ends an attempt whose response does not begin in time.
type headerTimer struct {
	end func()

	mu    sync.Mutex
	timer *time.Timer
	over  bool
}

// awaitHeaders returns the context for an attempt whose response must begin within d after its request was written.
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

// stop ends the wait: the headers have arrived, or the attempt has failed.
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
