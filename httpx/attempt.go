package httpx

import (
	"context"
	"io"
	"net/http"

	"github.com/seed1158cd35/weir"
)

// An attempt is the state of one attempt until its response has been read: the context in which it is sent, which ends with the
// response's body. It is a single object, because every attempt allocates one. It does not refer to the request's body, which it
// may outlive.
type attempt struct {
	start  start // the first bytes of the response's body, if they are read first
	ctx    once
	cancel context.CancelCauseFunc
	answer body
	ending ending
	bare   http.Request // the request to send, if it has no body
}

// newAttempt creates the context of an attempt, which ends with the request's context.
func newAttempt(ctx context.Context) *attempt {
	a := new(attempt)
	a.ctx.Context, a.cancel = context.WithCancelCause(ctx)
	return a
}

// request returns the request with the attempt's context, or with one derived from it.
func (a *attempt) request(ctx context.Context, req *http.Request) *http.Request {
	if req.Body != nil && req.Body != http.NoBody {
		return req.WithContext(ctx)
	}
	a.bare = *req.WithContext(ctx) // no allocation, because the copy stays here
	return &a.bare
}

// once is a context like weir.Once: calls within it make one attempt.
type once struct{ context.Context }

func (o *once) Value(key any) any {
	if v, ok := weir.OnceFor(key); ok {
		return v
	}
	return o.Context.Value(key)
}

// releasing returns the body of the response, whose end releases the attempt's context. The body of a connection that switched
// protocols is also an io.Writer.
func (a *attempt) releasing(b io.ReadCloser) io.ReadCloser {
	a.answer = body{b, a.cancel}
	if rw, ok := b.(io.ReadWriteCloser); ok {
		return struct {
			io.Writer
			*body
		}{rw, &a.answer}
	}
	return &a.answer
}
