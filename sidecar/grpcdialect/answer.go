package grpcdialect

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/grpcx/grpcclass"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// An answer is the body of a response. Its trailers contain the call's status. If the body breaks off, it ends with
// the status that a gRPC client would have derived from the error itself.
type answer struct {
	io.ReadCloser
	resp    *http.Response
	ctx     context.Context // of the attempt
	over    bool
	outcome outcome.Outcome
}

var _ httpx.Meter = (*answer)(nil)

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if a.over {
		return 0, io.EOF
	}
	n, err := a.ReadCloser.Read(p)
	if err == nil {
		return n, nil
	}
	a.over = true
	if err != io.EOF {
		a.broke(err)
		return n, io.EOF
	}
	o, ok := grpcclass.Header(a.resp.Trailer)
	if !ok {
		o = outcome.Outcome{Class: outcome.Failed, Code: "no grpc-status"}
	}
	a.outcome = begun(o)
	return n, io.EOF
}

// broke ends an incomplete response.
func (a *answer) broke(err error) {
	if a.outcome = begun(classify.Error(a.ctx, err)); outOfTime(a.ctx) {
		a.outcome = canceled
	}
	a.resp.Trailer = make(http.Header)
	setStatus(a.resp.Trailer, statusOf(a.ctx, err))
}

// begun returns the outcome of an attempt whose response the caller has partly seen.
func begun(o outcome.Outcome) outcome.Outcome {
	o.Undone, o.Unsent = false, false
	return o
}

// Outcome implements httpx.Meter. A caller that closes a response before its end has canceled the call.
func (a *answer) Outcome() outcome.Outcome {
	if !a.over {
		return canceled
	}
	return a.outcome
}

// statusOf returns the status of a stream that broke off.
func statusOf(ctx context.Context, err error) *status.Status {
	if outOfTime(ctx) {
		return status.New(codes.DeadlineExceeded, "the call did not complete before the caller's deadline")
	}
	if e, ok := errors.AsType[http2.StreamError](err); ok && ctx.Err() == nil {
		return status.New(resets(e.Code), "the upstream reset the stream: "+e.Code.String())
	}
	if errors.Is(context.Cause(ctx), httpx.ErrSilent) {
		return status.New(codes.Unavailable, "no message was sent in either direction for too long: see timeouts.idle")
	}
	if ctx.Err() != nil {
		return status.New(codes.Canceled, "the caller disconnected")
	}
	return status.New(codes.Unavailable, "the upstream's response is incomplete")
}

// canceled is the outcome of an attempt whose caller did not wait for its end.
var canceled = outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}

// outOfTime reports whether the caller's deadline has passed. The upstream gets the same deadline, and may notice it
// before the local timer fires.
func outOfTime(ctx context.Context) bool {
	at, ok := ctx.Deadline()
	return ok && !time.Now().Before(at)
}

// resets returns the status for an HTTP/2 reset ("HTTP2 Transport Mapping" of gRPC).
func resets(c http2.ErrCode) codes.Code {
	switch c {
	case http2.ErrCodeRefusedStream:
		return codes.Unavailable
	case http2.ErrCodeCancel:
		return codes.Canceled
	case http2.ErrCodeEnhanceYourCalm:
		return codes.ResourceExhausted
	case http2.ErrCodeInadequateSecurity:
		return codes.PermissionDenied
	}
	return codes.Internal
}
