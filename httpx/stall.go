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

// Why a body ends before its end. They are deadline errors to whoever asks.
var (
	// ErrBodyStalled means that the body of an answer brought nothing for
	// Timeouts.Idle.
	ErrBodyStalled error = stalled("the response body stalled")

	// ErrBodyTimeout means that a body took longer than Timeouts.Body.
	ErrBodyTimeout error = stalled("the body took too long")

	// ErrRequestStalled means that the body of a request brought nothing for
	// Timeouts.UploadIdle. It says nothing of the upstream.
	ErrRequestStalled error = stalled("the request body stalled")

	// ErrSilent means that a call of gRPC was silent in both directions for Timeouts.Idle, or an hour.
	ErrSilent error = stalled("the call was silent for too long")

	// ErrRequestSlow means that the body of a request came more slowly than
	// Timeouts.UploadRate. It says nothing of the upstream.
	ErrRequestSlow error = stalled("the request body was too slow")
)

type stalled string

func (s stalled) Error() string   { return string(s) }
func (s stalled) Timeout() bool   { return true }
func (s stalled) Temporary() bool { return true }
func (s stalled) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// A watched is the body of an answer, which ends if it brings nothing for too long, or
// takes too long in all. Only the time counts in which somebody waits for it: who reads
// it slowly does not end it.
type watched struct {
	io.ReadCloser
	cancel context.CancelCauseFunc // of the attempt
	idle   time.Duration           // 0 or less if there is no bound
	waits  *time.Timer             // for more; nil until somebody has
	whole  *time.Timer             // for the end; nil if there is no bound
	why    atomic.Pointer[error]   // it ended
}

// watch puts bounds around an answer's body, before anybody reads of it. A connection that
// has changed its protocol has none, and one of gRPC may be silent for as long as it
// likes: both have signs of life of their own.
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

// SetIdle changes how long the body may bring nothing; 0 or less is no bound. It is for
// who reads the body first, and knows better than the policy.
func (w *watched) SetIdle(d time.Duration) { w.idle = d }

// Ready reports whether Read has something to give at once, as far as the transport says.
func (w *watched) Ready() bool {
	b, ok := w.ReadCloser.(interface{ Ready() bool })
	return ok && b.Ready()
}

// Read is io.Reader's.
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

// wait starts the time for more.
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

// Close is io.Closer's.
func (w *watched) Close() error {
	for _, t := range []*time.Timer{w.waits, w.whole} {
		if t != nil {
			t.Stop()
		}
	}
	return w.ReadCloser.Close()
}
