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
	number int                     // of the attempt, from 1
	cancel context.CancelCauseFunc // nil if nothing bounds the attempt
	leave  func() bool
}

func (l *life) Value(key any) any { return l.values.Value(key) }

// begin makes the context of an attempt. bounded says that the attempt has a timeout.
func begin(caller, attempt context.Context, number int, bounded bool) *life {
	if !bounded {
		return &life{Context: caller, values: attempt, number: number}
	}
	ctx, cancel := context.WithCancelCause(caller)
	l := &life{Context: ctx, values: attempt, number: number, cancel: cancel}
	l.leave = context.AfterFunc(attempt, func() { cancel(context.Cause(attempt)) })
	return l
}

// end is called when the attempt is over: what failed is cut off.
func (l *life) end(err error) {
	if l.cancel == nil {
		return
	}
	if l.leave(); err != nil {
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
		resp.Body = &closer{resp.Body, l.cancel}
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
