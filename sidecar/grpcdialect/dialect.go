// Package grpcdialect lets the sidecar speak gRPC: it knows how calls ended by their statuses, gives
// the upstream as long as the caller gives, and words weir's errors as clients of gRPC
// understand them.
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

// The fields of gRPC, as net/http has them.
const (
	statusField   = "Grpc-Status"
	messageField  = "Grpc-Message"
	detailsField  = "Grpc-Status-Details-Bin"
	pushbackField = "Grpc-Retry-Pushback-Ms"
	timeoutField  = "Grpc-Timeout"
	attemptsField = "Grpc-Previous-Rpc-Attempts"
)

// A Dialect is that of every upstream that speaks gRPC. What comes in another form is sent on as it is.
type Dialect struct{}

var _ httpx.Dialect = Dialect{}

// Hear is httpx.Dialect's.
func (Dialect) Hear(r *http.Request, _ string) (httpx.Exchange, *refuse.Facts) {
	x := &exchange{grpc: isGRPC(r.Header)}
	if x.grpc {
		x.timeout, x.said = readTimeout(r.Header.Get(timeoutField))
		x.before, _ = strconv.ParseInt(r.Header.Get(attemptsField), 10, 32)
	}
	return x, nil
}

// isGRPC knows application/grpc and application/grpc+proto, and not application/grpc-web.
func isGRPC(h http.Header) bool {
	rest, ok := strings.CutPrefix(h.Get("Content-Type"), "application/grpc")
	return ok && (rest == "" || rest[0] == '+' || rest[0] == ';')
}

// An exchange is one call.
type exchange struct {
	grpc     bool
	timeout  time.Duration // that the caller gives the call, if it has said one
	said     bool
	before   int64 // attempts that the caller has made
	attempts int64 // of weir's

	stream atomic.Bool // more than one message has been sent: the call is a stream of the caller's
}

var _ interface {
	httpx.Hurried
	httpx.Failer
	httpx.Quitter
} = (*exchange)(nil)

// Describe is httpx.Exchange's. Operations are told apart by their paths.
func (x *exchange) Describe(*weir.Call) {}

// Patience is httpx.Hurried's.
func (x *exchange) Patience() (time.Duration, bool) { return x.timeout, x.said }

// Attempt is httpx.Exchange's. The upstream has as long as is left of what the caller gives.
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

// Answered is httpx.Exchange's. An answer of trailers alone is known at once, any other at its end.
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

// Failed is httpx.Failer's.
func (x *exchange) Failed(ctx context.Context, err error) error {
	if outOfTime(ctx) {
		return &judged{err, canceled}
	}
	if !x.stream.Load() || ctx.Err() != nil {
		return err
	}
	return &judged{err, x.once(classify.Error(ctx, err))}
}

// once is an outcome that has no other attempt after it if the caller streams: what it has sent is gone.
func (x *exchange) once(o outcome.Outcome) outcome.Outcome {
	if x.stream.Load() && o.Retryable() {
		o.Undone, o.Unsent = false, false
		o.Hint.Advice = outcome.NotAgain
	}
	return o
}

// judged is an error with what it means.
type judged struct {
	error
	outcome outcome.Outcome
}

func (e *judged) Outcome() outcome.Outcome { return e.outcome }
func (e *judged) Unwrap() error            { return e.error }

// GaveUp is httpx.Quitter's.
func (x *exchange) GaveUp(h http.Header) {
	if x.grpc && h[statusField] != nil {
		h[pushbackField] = []string{grpcx.Never}
	}
}

// Refuse is httpx.Exchange's: an answer of trailers alone, with status 200.
func (x *exchange) Refuse(w http.ResponseWriter, f *refuse.Facts) {
	if !x.grpc {
		f.Write(w)
		return
	}
	s, push := grpcx.Words(f)
	h := w.Header()
	h.Set("Content-Type", "application/grpc")
	h.Del("Connection") // of a body that is left: HTTP/2 ends the stream
	setStatus(h, s)
	if push != "" {
		h[pushbackField] = []string{push}
	}
	w.WriteHeader(http.StatusOK)
}
