package weir

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// ErrAttemptTimeout is why the context of an attempt ends when the attempt has
// taken too long. It is a deadline error to whoever asks.
var ErrAttemptTimeout error = attemptTimeout{}

// ErrCallTimeout is why it ends when the call's own time was up before the
// attempt had had its full time. That says nothing of the upstream: the time went
// by while the call waited.
var ErrCallTimeout error = callTimeout{}

// A callTimeout is the type of ErrCallTimeout: a deadline error like the other, but one that says
// how it is to be classified.
type callTimeout struct{ attemptTimeout }

// callTimedOut is its code. What the attempts before it say of the upstream holds.
const callTimedOut = "call timeout"

func (callTimeout) Error() string { return "call timed out" }

// Outcome keeps the gates from counting it against the upstream.
func (callTimeout) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: callTimedOut}
}

// An attemptTimeout is the type of ErrAttemptTimeout. It answers like context.DeadlineExceeded,
// whose type is the standard library's own, so that code which asks for a timeout finds one.
type attemptTimeout struct{}

func (attemptTimeout) Error() string   { return "attempt timed out" }
func (attemptTimeout) Timeout() bool   { return true }
func (attemptTimeout) Temporary() bool { return true }
func (attemptTimeout) Is(target error) bool {
	return target == context.DeadlineExceeded
}

// An attempt is the context of one attempt of a call. It ends with the attempt
// or at its timeout. It is made in earnest only when somebody asks for it, so
// that a call that never looks at its context costs no timer.
type attempt struct {
	u        *Upstream // of whose clock the deadline is an instant
	parent   context.Context
	deadline time.Duration // of this attempt

	made   atomic.Pointer[made] // nil until asked for
	ended  atomic.Bool
	ofCall bool // it is the call's own deadline, and not this attempt's
}

// made is the real context behind an attempt.
type made struct {
	context.Context
	cancel context.CancelFunc
}

var _ context.Context = (*attempt)(nil)

// context makes the real context, once. The attempt may end meanwhile: whoever
// comes second, this or end, cancels it.
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

// Done and Deadline make the real context: who asks for them is going to wait.
func (a *attempt) Done() <-chan struct{}       { return a.context().Done() }
func (a *attempt) Deadline() (time.Time, bool) { return a.context().Deadline() }

// Err is asked often, and by some instead of Done.
func (a *attempt) Err() error {
	if a.made.Load() != nil || a.ended.Load() || a.u.clock.Now() >= a.deadline {
		return a.context().Err()
	}
	return a.parent.Err()
}

// An attemptKey is what an attempt is found by in the contexts made of its own.
type attemptKey struct{}

// Value hands the standard library its own context when it looks for one, and
// lets a call that is made within an attempt know of it.
func (a *attempt) Value(key any) any {
	if key == (attemptKey{}) {
		return a
	}
	if m := a.made.Load(); m != nil {
		return m.Value(key)
	}
	return a.parent.Value(key)
}

// end releases the context. Whoever still holds it finds it canceled.
func (a *attempt) end() {
	a.ended.Store(true)
	if m := a.made.Load(); m != nil {
		m.cancel()
	}
}

// within reports whether ctx belongs to an attempt of a weir further out, which
// repeats it if need be. Layers must not multiply: three of three attempts each
// would be 27.
func within(ctx context.Context) bool {
	if ctx == context.Background() {
		return false
	}
	return ctx.Value(attemptKey{}) != nil
}

// Once is ctx for calls that make one attempt and no more, because whoever asks has
// something better to do with a failure than to repeat it.
func Once(ctx context.Context) context.Context { return context.WithValue(ctx, attemptKey{}, true) }

// OnceFor answers the Value method of a context that is Once itself: ok if the key asks for that.
func OnceFor(key any) (v any, ok bool) {
	if key == (attemptKey{}) {
		return true, true
	}
	return nil, false
}

// why is err, or what ended the attempt's context if that was the call's timeout:
// the context itself only says that a deadline has passed.
func (a *attempt) why(err error) error {
	if m := a.made.Load(); err != nil && m != nil && context.Cause(m) == ErrCallTimeout {
		return ErrCallTimeout
	}
	return err
}
