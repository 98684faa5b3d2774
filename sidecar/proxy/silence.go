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

// grpcIdle is how long a call of gRPC may be silent in both directions by default. A watch of something that seldom
// changes is silent for long, but a peer that stalls may not hold what is bounded forever.
const grpcIdle = time.Hour

// grpcSilence returns the longest silence of a call of gRPC; 0 or less if there is no bound. idle is set by the operator.
func grpcSilence(t weir.Timeouts) time.Duration {
	if t.Idle == 0 {
		return grpcIdle
	}
	return t.Idle
}

// A quiet is a call of gRPC that ends when no message has gone in either direction for too long.
type quiet struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration
	timer   *time.Timer
	mu      sync.Mutex
	over    bool // the call has been served: a read of its body may still be under way
	window  window
}

// quietly serves a call of gRPC that may be silent for so long. The function ends the watch.
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

// moves begins another silence. A write that the caller does not read is cut later than the call, whose status it
// would hold up.
func (q *quiet) moves() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.over {
		return
	}
	q.timer.Reset(q.idle)
	_ = q.control.SetWriteDeadline(time.Now().Add(q.idle + spared))
}

// Unwrap is http.ResponseController's.
func (q *quiet) Unwrap() http.ResponseWriter { return q.ResponseWriter }

// WriteHeader and Write are http.ResponseWriter's.
func (q *quiet) WriteHeader(status int) {
	q.moves()
	q.ResponseWriter.WriteHeader(status)
}

func (q *quiet) Write(p []byte) (int, error) {
	q.moves()
	defer unread.begin(&q.window)()
	return q.ResponseWriter.Write(p)
}

// FlushError is http.ResponseController's.
func (q *quiet) FlushError() error {
	defer unread.begin(&q.window)()
	return q.control.Flush()
}

type quietBody struct {
	io.ReadCloser
	quiet *quiet
}

// Read is io.Reader's.
func (b *quietBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.quiet.moves()
	}
	return n, err
}
