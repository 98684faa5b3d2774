// Package grpcdialect implements gRPC for the sidecar. It reads the results of calls from their statuses, passes the
// caller's timeout to the upstream, and writes weir's errors as gRPC statuses.
package grpcdialect

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/grpcx"
	"github.com/seed1158cd35/weir/grpcx/grpcclass"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// The fields of gRPC, in the canonical form of net/http.
const (
	statusField   = "Grpc-Status"
	messageField  = "Grpc-Message"
	detailsField  = "Grpc-Status-Details-Bin"
	pushbackField = "Grpc-Retry-Pushback-Ms"
	timeoutField  = "Grpc-Timeout"
	attemptsField = "Grpc-Previous-Rpc-Attempts"
)

// A Dialect is the dialect of every gRPC upstream. Requests of other types are forwarded unchanged.
type Dialect struct{}

var _ httpx.Dialect = Dialect{}

// Hear implements httpx.Dialect.
func (Dialect) Hear(r *http.Request, _ string) (httpx.Exchange, *refuse.Facts) {
	x := &exchange{grpc: isGRPC(r.Header)}
	if x.grpc {
		x.timeout, x.said = readTimeout(r.Header.Get(timeoutField))
		x.before, _ = strconv.ParseInt(r.Header.Get(attemptsField), 10, 32)
	}
	return x, nil
}

// isGRPC accepts application/grpc and application/grpc+proto, but not application/grpc-web.
func isGRPC(h http.Header) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// An exchange is one call.
type exchange struct {
	grpc     bool
	timeout  time.Duration // of the caller, if it sent one
	said     bool
	before   int64 // attempts that the caller has made
	attempts int64 // attempts that weir has made

	stream atomic.Bool // more than one message was sent, so the caller streams
}

var _ interface {
	httpx.Hurried
	httpx.Failer
	httpx.Quitter
} = (*exchange)(nil)

// Describe implements httpx.Exchange. Operations are distinguished by their paths.
func (x *exchange) Describe(*weir.Call) {}

// Patience implements httpx.Hurried.
func (x *exchange) Patience() (time.Duration, bool) { return x.timeout, x.said }

// Attempt implements httpx.Exchange. It passes the rest of the caller's timeout to the upstream.
func (x *exchange) Attempt(r *http.Request) error {
	if !x.grpc {
		return nil
	}
	if at, ok := r.Context().Deadline(); ok && x.said {
		r.Header[timeoutField] = []string{writeTimeout(time.Until(at))}
	}
	if n := x.before + x.attempts; n > 0 {
		r.Header[attemptsField] = []string{strconv.FormatInt(n, 10)}
	}
	if x.attempts++; r.Body != nil && r.Body != http.NoBody {
		r.Body = &messages{ReadCloser: r.Body, second: &x.stream}
	}
	return nil
}

// Answered implements httpx.Exchange. The outcome of a trailers-only response is known immediately, otherwise at its
// end.
func (x *exchange) Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	if !x.grpc {
		return o
	}
	if said, ok := grpcclass.Header(resp.Header); ok {
		return x.once(said)
	}
	if isGRPC(resp.Header) && resp.StatusCode == http.StatusOK {
		resp.Body = &answer{ReadCloser: resp.Body, resp: resp, ctx: resp.Request.Context()}
	}
	return o
}

// Failed implements httpx.Failer.
func (x *exchange) Failed(ctx context.Context, err error) error {
	if outOfTime(ctx) {
		return &judged{err, canceled}
	}
	if !x.stream.Load() || ctx.Err() != nil {
		return err
	}
	return &judged{err, x.once(classify.Error(ctx, err))}
}

// once makes an outcome final if the caller streams, because the sent messages are no longer available.
func (x *exchange) once(o outcome.Outcome) outcome.Outcome {
	if x.stream.Load() && o.Retryable() {
		o.Undone, o.Unsent = false, false
		o.Hint.Advice = outcome.NotAgain
	}
	return o
}

// judged is an error with its outcome.
type judged struct {
	error
	outcome outcome.Outcome
}

func (e *judged) Outcome() outcome.Outcome { return e.outcome }
func (e *judged) Unwrap() error            { return e.error }

// GaveUp implements httpx.Quitter.
func (x *exchange) GaveUp(h http.Header) {
	if x.grpc && h[statusField] != nil {
		h[pushbackField] = []string{grpcx.Never}
	}
}

// Refuse implements httpx.Exchange. It writes a trailers-only response with status 200.
func (x *exchange) Refuse(w http.ResponseWriter, f *refuse.Facts) {
	if !x.grpc {
		f.Write(w)
		return
	}
	s, push := grpcx.Words(f)
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Del("Connection") // set for an unread body; in HTTP/2 the stream ends instead
	setStatus(h, s)
	if push != "" {
		h[pushbackField] = []string{push}
	}
	w.WriteHeader(http.StatusOK)
}
