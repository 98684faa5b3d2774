package weir

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// ErrAttemptTimeout is the cause with which the context of an attempt ends at the attempt's timeout. It matches
// context.DeadlineExceeded.
var ErrAttemptTimeout error = attemptTimeout{}

// ErrCallTimeout is the cause if the call's timeout ended the attempt before the attempt's own timeout. It says
// nothing about the upstream, because the call spent part of its time waiting.
var ErrCallTimeout error = callTimeout{}

// A callTimeout is the type of ErrCallTimeout. It is a deadline error that states its own classification.
type callTimeout struct{ attemptTimeout }

// callTimedOut is its outcome code. The evidence of earlier attempts about the upstream stays valid.
const callTimedOut = "call timeout"

func (callTimeout) Error() string { return "call timed out" }

// Outcome prevents the gates from counting it against the upstream.
func (callTimeout) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: callTimedOut}
}

// An attemptTimeout is the type of ErrAttemptTimeout. It behaves like context.DeadlineExceeded, whose type is private
// to the standard library, so that code that checks for a timeout finds one.
type attemptTimeout struct{}

func (attemptTimeout) Error() string   { return "attempt timed out" }
func (attemptTimeout) Timeout() bool   { return true }
func (attemptTimeout) Temporary() bool { return true }
func (attemptTimeout) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// An attempt is the context of one attempt of a call. It ends with the attempt or at its timeout. The real context is
// made on first use, so that a call that never uses it costs no timer.
type attempt struct {
	u        *Upstream // its clock measures deadline
	parent   context.Context
	deadline time.Duration // of this attempt

	made   atomic.Pointer[made] // nil until needed
	ended  atomic.Bool
	ofCall bool // deadline is the call's, not the attempt's
}

// A made is the real context of an attempt.
type made struct {
	context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*attempt)(nil)

// context makes the real context once. The attempt may end meanwhile: then the later of context and end cancels it.
func (a *attempt) context() context.Context {
	if m := a.made.Load(); m != nil {
		return m.Context
	}
	cause := ErrAttemptTimeout
	if a.ofCall {
		cause = ErrCallTimeout
	}
	ctx, cancel := a.u.clock.WithTimeout(a.parent, a.deadline-a.u.clock.Now(), cause)
	if !a.made.CompareAndSwap(nil, &made{ctx, cancel}) {
		cancel()
	} else if a.ended.Load() {
		cancel()
	}
	return a.made.Load().Context
}

// Done and Deadline make the real context, because their caller is going to wait.
func (a *attempt) Done() <-chan struct{}       { return a.context().Done() }
func (a *attempt) Deadline() (time.Time, bool) { return a.context().Deadline() }

// Err is called often, by some callers instead of Done.
func (a *attempt) Err() error {
	if a.made.Load() != nil || a.ended.Load() || a.u.clock.Now() >= a.deadline {
		return a.context().Err()
	}
	return a.parent.Err()
}

// An attemptKey is the key of the attempt in contexts derived from it.
type attemptKey struct{}

// Value lets the standard library find its own context, and lets an inner call find the attempt.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	if m := a.made.Load(); m != nil {
		return m.Value(key)
	}
	return a.parent.Value(key)
}

// end cancels the context.
func (a *attempt) end() {
	a.ended.Store(true)
	if m := a.made.Load(); m != nil {
		m.cancel()
	}
}

// within reports whether ctx belongs to an attempt of an outer weir, which does the retries. Retries must not
// multiply: three layers of three attempts would make 27.
func within(ctx context.Context) bool {
	if ctx == context.Background() {
		return false
	}
	return ctx.Value(attemptKey{}) != nil
}

// Once returns a context for calls that must make only one attempt, because their caller handles a failure better
// than by a retry.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, attemptKey{}, true) }

// OnceFor implements the Value method of contexts that act like Once: ok is true if the key asks for that.
func OnceFor(key any) (v any, ok bool) {
	if key == (attemptKey{}) {
		return true, true
	}
	return nil, false
}

// why returns err, or ErrCallTimeout if that ended the context, which by itself reports only an exceeded deadline.
func (a *attempt) why(err error) error {
	if m := a.made.Load(); err != nil && m != nil && context.Cause(m) == ErrCallTimeout {
		return ErrCallTimeout
	}
	return err
}
