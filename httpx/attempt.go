package httpx

import (
	"context"
	"io"
	"net/http"

	"github.com/seed1158cd35/weir"
)

// An attempt is what one attempt has until its answer has been read: the context in which it is
// sent, and the end of that with the body of the answer. It is one object, since every attempt
// makes one, and holds nothing of the request's body, which it may outlive.
type attempt struct {
	start  start // of the answer's body, if that is read first
	ctx    once
	cancel context.CancelCauseFunc
	answer body
	ending ending
	bare   http.Request // what is sent, if that has no body
}

// newAttempt makes the context of an attempt, which ends with that of the request.
func newAttempt(ctx context.Context) *attempt {
	a := new(attempt)
	a.ctx.Context, a.cancel = context.WithCancelCause(ctx)
	return a
}

// request is a request within the attempt, or within a context that was made of its own.
func (a *attempt) request(ctx context.Context, req *http.Request) *http.Request {
	if req.Body != nil && req.Body != http.NoBody {
		return req.WithContext(ctx)
	}
	a.bare = *req.WithContext(ctx) // which is no object, as it stays here
	return &a.bare
}

// once is weir.Once of a context: calls within it make one attempt.
type once struct{ context.Context }

func (o *once) Value(key any) any {
	if v, ok := weir.OnceFor(key); ok {
		return v
	}
	return o.Context.Value(key)
}

// releasing is the body of the attempt's answer, whose end releases the attempt's context.
// That of a connection that changed its protocol can be written to, too.
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
