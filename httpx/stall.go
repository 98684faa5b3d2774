package httpx

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
)

// Reasons why a body is ended early. They match context.DeadlineExceeded.
var (
	// ErrBodyStalled means that no byte of a response's body arrived for Timeouts.Idle.
	ErrBodyStalled error = stalled("the response body stalled")

	// ErrBodyTimeout means that a body took longer than Timeouts.Body.
	ErrBodyTimeout error = stalled("the body took too long")

	// ErrRequestStalled means that no byte of a request's body arrived for Timeouts.UploadIdle. It implies nothing about the
	// upstream.
	ErrRequestStalled error = stalled("the request body stalled")

	// ErrSilent means that a gRPC call was silent in both directions for Timeouts.Idle, or for an hour.
	ErrSilent error = stalled("the call was silent for too long")

	// ErrRequestSlow means that the body of a request was slower than Timeouts.UploadRate. It implies nothing about the upstream.
	ErrRequestSlow error = stalled("the request body was too slow")
)

type stalled string

func (s stalled) Error() string   { return string(s) }
func (s stalled) Timeout() bool   { return true }
func (s stalled) Temporary() bool { return true }
func (s stalled) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// A watched is a response body that ends if nothing arrives for too long, or if it takes too long in total. Only the time in a
// Read counts, so a slow reader does not end it.
type watched struct {
	io.ReadCloser
	cancel context.CancelCauseFunc // of the attempt
	idle   time.Duration           // 0 or less means no bound
	waits  *time.Timer             // timer for the next bytes; nil before the first read
	whole  *time.Timer             // timer for the complete body; nil without a bound
	why    atomic.Pointer[error]   // why it was ended
}

// watch applies the bounds to a response's body, before it is read. There are no bounds for a connection that switched protocols,
// and a gRPC call may be silent for any time: both have their own keep-alive.
func watch(resp *http.Response, t weir.Timeouts, cancel context.CancelCauseFunc) {
	if t.Idle <= 0 && t.Body <= 0 || resp.Body == http.NoBody || resp.StatusCode == http.StatusSwitchingProtocols || isGRPC(resp.Header) {
		return
	}
	w := &watched{ReadCloser: resp.Body, cancel: cancel, idle: t.Idle}
	if t.Body > 0 {
		w.whole = time.AfterFunc(t.Body, func() { w.end(&ErrBodyTimeout) })
	}
	resp.Body = w
}

func isGRPC(h http.Header) bool {
	return strings.HasPrefix(h.Get("Content-Type"), "application/grpc")
}

// SetIdle changes how long no byte may arrive; 0 or less means no bound. It is for a first reader of the body that knows more
// than the policy.
func (w *watched) SetIdle(d time.Duration) { w.idle = d }

// Ready reports whether Read would return data immediately, if the transport can tell.
func (w *watched) Ready() bool {
	b, ok := w.ReadCloser.(interface{ Ready() bool })
	return ok && b.Ready()
}

// Read implements io.Reader.
func (w *watched) Read(p []byte) (int, error) {
	w.wait()
	n, err := w.ReadCloser.Read(p)
	if w.waits != nil {
		w.waits.Stop()
	}
	if err != nil && err != io.EOF {
		if why := w.why.Load(); why != nil {
			err = *why
		}
	}
	return n, err
}

// wait starts the timer for the next bytes.
func (w *watched) wait() {
	switch {
	case w.idle <= 0:
	case w.waits == nil:
		w.waits = time.AfterFunc(w.idle, func() { w.end(&ErrBodyStalled) })
	default:
		w.waits.Reset(w.idle)
	}
}

func (w *watched) end(why *error) {
	w.why.CompareAndSwap(nil, why)
	w.cancel(*why)
}

// Close implements io.Closer.
func (w *watched) Close() error {
	for _, t := range []*time.Timer{w.waits, w.whole} {
		if t != nil {
			t.Stop()
		}
	}
	return w.ReadCloser.Close()
}
