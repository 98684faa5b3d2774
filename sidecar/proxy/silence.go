package proxy

import (
	"context"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// grpcIdle is the default limit of silence in both directions of a gRPC call. A watch of something that seldom changes
// is silent for long, but a stalled peer must not hold slots and units forever.
const grpcIdle = time.Hour

// grpcSilence returns the longest silence of a gRPC call, or 0 or less if there is no limit. An operator's Idle has
// precedence.
func grpcSilence(t weir.Timeouts) time.Duration {
	if t.Idle == 0 {
		return grpcIdle
	}
	return t.Idle
}

// A quiet is a gRPC call that ends after too long a silence in both directions.
type quiet struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	timer   *time.Timer
	mu      sync.Mutex
	over    bool // the call has ended; a read of its body may still be in progress
	window  window
}

// quietly limits the silence of a gRPC call to idle. The returned function ends the limit.
func quietly(w http.ResponseWriter, r *http.Request, idle time.Duration) (http.ResponseWriter, *http.Request, func()) {
	if idle <= 0 {
		return w, r, func() {}
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	q := &quiet{ResponseWriter: w, control: http.NewResponseController(w), idle: idle}
	q.window.control = q.control
	q.timer = time.AfterFunc(idle, func() { cancel(httpx.ErrSilent) })
	q.moves()
	r = r.WithContext(ctx)
	if r.Body != nil && r.Body != http.NoBody {
		r.Body = &quietBody{r.Body, q}
	}
	return q, r, func() {
		q.mu.Lock()
		q.over = true
		q.mu.Unlock()
		q.timer.Stop()
		cancel(nil)
	}
}

// moves restarts the timer. The deadline of a write is later than the call's deadline, because a cut write would delay
// the call's status.
func (q *quiet) moves() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.timer.Reset(q.idle)
	_ = q.control.SetWriteDeadline(time.Now().Add(q.idle + spared))
}

// Unwrap implements the interface of http.ResponseController.
func (q *quiet) Unwrap() http.ResponseWriter { return q.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (q *quiet) WriteHeader(status int) {
	q.moves()
	q.ResponseWriter.WriteHeader(status)
}

func (q *quiet) Write(p []byte) (int, error) {
	q.moves()
	defer unread.begin(&q.window)()
	return q.ResponseWriter.Write(p)
}

// FlushError implements the interface of http.ResponseController.
func (q *quiet) FlushError() error {
	defer unread.begin(&q.window)()
	return q.control.Flush()
}

type quietBody struct {
	io.ReadCloser
	quiet *quiet
}

// Read implements io.Reader.
func (b *quietBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.quiet.moves()
	}
	return n, err
}
