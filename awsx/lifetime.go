package awsx

import (
	"context"
	"io"
	"net/http"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// An answer may be read long after the attempt that brought it: objects of S3, streams of
// models. So what is sent does not live in the attempt's context, which ends with it, but
// in the caller's, until the answer is closed.

// A life is the context in which an attempt is sent: it has the values of the attempt,
// and ends with the call. The attempt's own end cuts it off only while it is waited for.
type life struct {
	context.Context
	values context.Context
	u      *upstream
	number int                     // of the attempt, from 1
	cancel context.CancelCauseFunc // nil if nothing bounds the attempt
	leave  func() bool
	held   bool // an answer is still to be closed
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

// lifeOf is the attempt that a context belongs to, nil if there is none.
func lifeOf(ctx context.Context) *life {
	l, _ := ctx.Value(lifeKey{}).(*life)
	return l
}

// aside is the context of a call that the SDK makes within an attempt of another: for
// credentials, for a session with a bucket. It is a call of its own, with the attempts
// of its own policy, and the one around it is not repeated for it. Without that the
// core would take the one around it for the one that repeats.
type aside struct{ context.Context }

func (aside) Value(any) any { return nil }

// core is the context of a call for the core.
func core(ctx context.Context) context.Context {
	if lifeOf(ctx) != nil {
		return aside{ctx}
	}
	return ctx
}

// begin makes the context of an attempt.
func begin(caller, attempt context.Context, number int, u *upstream) *life {
	if !u.bounded {
		return &life{Context: caller, values: attempt, u: u, number: number}
	}
	ctx, cancel := context.WithCancelCause(caller)
	l := &life{Context: ctx, values: attempt, u: u, number: number, cancel: cancel}
	l.leave = context.AfterFunc(attempt, func() { cancel(context.Cause(attempt)) })
	return l
}

// end is called when the attempt is over: what failed is cut off, and so is what has
// nothing left to be read, or the caller's context would remember it for as long as it
// lasts.
func (l *life) end(err error) {
	if l.cancel == nil {
		return
	}
	if l.leave(); err != nil || !l.held {
		l.cancel(err)
	}
}

// closing ends the life of an attempt when its answer is closed.
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
