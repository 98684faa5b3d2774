package httpx

import (
	"context"
	"io"
	"time"

	"github.com/seed1158cd35/weir"
)

// An attempt is what one attempt has until its answer has been read: the context in which it is
// sent, and the end of that with the body of the answer. It is one object, since every attempt
// makes one, and holds nothing of the request's body, which it may outlive.
type attempt struct {
	ctx    once
	cancel context.CancelCauseFunc
	late   error // why it ends at its timeout
	answer body
}

// newAttempt makes the context of an attempt, which ends with that of the request.
func newAttempt(ctx context.Context) *attempt {
	a := new(attempt)
	a.ctx.Context, a.cancel = context.WithCancelCause(ctx)
	return a
}

// after ends the attempt after d, unless the timer is stopped.
func (a *attempt) after(d time.Duration, why error) *time.Timer {
	a.late = why
	return time.AfterFunc(d, a.expire)
}

func (a *attempt) expire() { a.cancel(a.late) }

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
