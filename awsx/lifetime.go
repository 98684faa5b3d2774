package awsx

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// A response may be read long after its attempt: objects of S3, streams of models. So requests are not sent in the attempt's
// context, which ends with the attempt, but in the caller's context, until the response is closed.

// A life is the context in which an attempt is sent. It has the values of the attempt and ends with the call. The end of the
// attempt's context only cancels it while the response is awaited.
type life struct {
	context.Context
	values context.Context
	u      *upstream
	number int                     // of the attempt, from 1
	cancel context.CancelCauseFunc // nil if the attempt has no timeout
	leave  func() bool
	held   bool // a response must still be closed
}

func (l *life) Value(key any) any {
	if key == (lifeKey{}) {
		return l
	}
	if v := l.values.Value(key); v != nil {
		return v
	}
	return l.Context.Value(key)
}

type lifeKey struct{}

// lifeOf returns the attempt that a context belongs to, nil if there is none.
func lifeOf(ctx context.Context) *life {
	l, _ := ctx.Value(lifeKey{}).(*life)
	return l
}

// aside is the context of a call that the SDK makes within an attempt of another, for credentials or a session with a bucket. It
// is a separate call with its own policy's retries. Without aside, package weir would see a retry loop around it and leave
// retries to that loop.
type aside struct{ context.Context }

func (aside) Value(any) any { return nil }

// core returns the context to pass to package weir for a call.
func core(ctx context.Context) context.Context {
	if lifeOf(ctx) != nil {
		return aside{ctx}
	}
	return ctx
}

// begin returns the context of an attempt.
func begin(caller, attempt context.Context, number int, u *upstream) *life {
	if !u.bounded {
		return &life{Context: caller, values: attempt, u: u, number: number}
	}
	ctx, cancel := context.WithCancelCause(caller)
	l := &life{Context: ctx, values: attempt, u: u, number: number, cancel: cancel}
	l.leave = context.AfterFunc(attempt, func() { cancel(context.Cause(attempt)) })
	return l
}

// end is called when the attempt is over. It cancels the context if the attempt failed or there is nothing left to read.
// Otherwise the caller's context would keep a reference for as long as it lives.
func (l *life) end(err error) {
	if l.cancel == nil {
		return
	}
	if l.leave(); err != nil || !l.held {
		l.cancel(err)
	}
}

// closing ends the context of an attempt when its response is closed.
type closing struct{}

func (closing) ID() string { return "weir:Close" }

func (closing) HandleDeserialize(ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler) (middleware.DeserializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleDeserialize(ctx, in)
	l := lifeOf(ctx)
	if resp, ok := out.RawResponse.(*smithyhttp.Response); ok && l != nil && l.cancel != nil && resp.Body != nil && resp.Body != http.NoBody {
		resp.Body, l.held = &closer{resp.Body, l.cancel}, true
	}
	return out, metadata, err
}

type closer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc
}

func (c *closer) Close() error {
	err := c.ReadCloser.Close()
	c.cancel(context.Canceled)
	return err
}
