package awsx

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
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
	held   bool    // a response must still be closed
	answer *answer // its body; nil if there is none
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
	if resp, ok := out.RawResponse.(*smithyhttp.Response); ok && l != nil && resp.Body != nil && resp.Body != http.NoBody {
		l.held, l.answer = true, &answer{ReadCloser: resp.Body, cancel: l.cancel, caller: l.Context, left: resp.ContentLength, part: partLength(resp), errors: classify.NewStream(resp.Header)}
		resp.Body = l.answer
	}
	return out, metadata, err
}

// An answer is the body of a response. If the program reads it after the call, as it reads objects of S3 and streams of models,
// the attempt is reported at its end.
type answer struct {
	io.ReadCloser
	cancel context.CancelCauseFunc // nil if the attempt has no timeout
	caller context.Context
	errors *classify.Stream // nil if the format has no known errors
	left   int64            // remaining bytes; negative if unknown
	part   int64            // bytes of the part of an object that are still missing; 0 if the response is not a part

	mu    sync.Mutex
	run   *weir.Run // after follow
	ended bool
	end   outcome.Outcome
}

// partLength returns the number of bytes that a response with a part of an object announces, or 0.
func partLength(resp *smithyhttp.Response) int64 {
	if resp.Uncompressed || resp.Request != nil && resp.Request.Method == http.MethodHead {
		return 0
	}
	return classify.PartLength(resp.StatusCode, resp.Header)
}

// follow reports the attempt when the body ends. It returns false if the SDK has read the body, or none arrived.
func (a *answer) follow(r *weir.Run) bool {
	if a == nil {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended && a.end.Class == outcome.OK {
		return false
	}
	r.ReportStart(outcome.Outcome{Class: outcome.OK})
	if a.run = r; a.ended {
		r.ReportEnd(a.end)
	}
	return true
}

// Read implements io.Reader.
func (a *answer) Read(b []byte) (int, error) {
	n, err := a.ReadCloser.Read(b)
	a.part = max(0, a.part-int64(n))
	if a.left -= int64(n); n > 0 && a.errors != nil {
		a.errors.Feed(b[:n])
	}
	a.report(n, err)
	return n, err
}

// Close implements io.Closer.
func (a *answer) Close() error {
	err := a.ReadCloser.Close()
	a.report(0, errClosed)
	if a.cancel != nil {
		a.cancel(context.Canceled)
	}
	return err
}

// errClosed means that the program has closed a body: it has read what it needed, unless its context has ended.
var errClosed = errors.New("closed")

// report reports progress, or once the end of the body, with the error that ended it.
func (a *answer) report(n int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.ended {
		return
	}
	if err != nil {
		a.ended, a.end = true, a.outcome(err)
	}
	switch {
	case a.run == nil:
	case a.ended:
		a.run.ReportEnd(a.end)
	case n > 0:
		a.run.ReportProgress()
	}
}

func (a *answer) outcome(err error) outcome.Outcome {
	if a.errors != nil {
		if err == io.EOF {
			a.errors.End()
		}
		if o, ok := a.errors.Failed(); ok {
			return o
		}
	}
	switch {
	case a.part > 0 && (err == io.EOF || a.left == 0):
		return outcome.Outcome{Class: outcome.Failed, Code: classify.CutStream}
	case err == io.EOF, err == errClosed && (a.left == 0 || a.caller.Err() == nil):
		return outcome.Outcome{Class: outcome.OK}
	case a.caller.Err() != nil:
		return outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}
	}
	o := classify.Error(a.caller, err)
	if o.Class != outcome.Failed {
		o = outcome.Outcome{Class: outcome.Failed, Code: "CutAnswer"}
	}
	o.Undone, o.Unsent = false, false
	return o
}
