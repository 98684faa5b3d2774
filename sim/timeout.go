package sim

import (
	"context"
	"time"
)

// beginning is the instant 0 in the deadlines of contexts.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A timeout is a context that ends at an instant of its world. It notifies waiting goroutines in order of arrival.
// The standard library's contexts do that in random order.
//
// Because programs derive standard contexts from it, the exposed context is a standard one, whose only parent is the
// timeout's source.
type timeout struct {
	node
	parent   context.Context
	deadline time.Duration // its own or an ancestor's, whichever is earlier
	event    event         // on the agenda if the deadline is its own
	cause    error         // of a timeout
	source   source
	shown    context.Context
	shut     context.CancelCauseFunc
	done     <-chan struct{} // of shown
}

var _ context.Context = (*timeout)(nil)

type timeoutKey struct{}

func (w *World) withTimeout(ctx context.Context, d time.Duration, cause error) (context.Context, context.CancelFunc) {
	t := &timeout{parent: ctx, deadline: w.after(max(d, 0)), cause: cause}
	if t.init(w); cause == nil {
		t.cause = context.DeadlineExceeded
	}
	t.source.t = t
	t.shown, t.shut = context.WithCancelCause(&t.source)
	t.done = t.shown.Done()
	t.start()
	return t, t.leave
}

// start attaches the timeout to its parent, and puts it on the agenda unless an ancestor ends first.
func (t *timeout) start() {
	above, below := t.parent.Value(timeoutKey{}).(*timeout)
	if below = below && above.deadline <= t.deadline; below {
		t.deadline = above.deadline
	}
	if t.look(); t.source.err != nil {
		return
	}
	t.above = t.w.node(t.parent)
	t.above.adopt(t)
	switch {
	case t.deadline <= t.w.now:
		t.finish(context.DeadlineExceeded, t.cause)
	case !below && t.deadline < forever:
		t.event.timer = t
		t.w.plan(&t.event, t.deadline)
	}
}

// look ends the timeout if its parent has ended without a notification, as foreign contexts do.
func (t *timeout) look() {
	if t.source.err == nil && t.parent.Err() != nil {
		t.finish(t.parent.Err(), context.Cause(t.parent))
	}
}

// leave is the timeout's cancel function.
func (t *timeout) leave() {
	t.look()
	t.finish(context.Canceled, context.Canceled)
}

// finish ends the context. Only the first end counts.
func (t *timeout) finish(err, cause error) {
	if t.source.err != nil {
		return
	}
	t.source.end(err, cause)
	t.shut(nil) // it has already ended
	t.w.agenda.remove(&t.event)
	t.above.disown(t)
	t.tell(err, cause)
}

func (t *timeout) Deadline() (time.Time, bool) {
	if t.deadline == forever {
		return time.Time{}, false
	}
	return beginning.Add(t.deadline), true
}

func (t *timeout) Done() <-chan struct{} {
	t.look()
	return t.done
}

func (t *timeout) Err() error {
	t.look()
	return t.source.err
}

func (t *timeout) Value(key any) any {
	if key == (timeoutKey{}) {
		return t
	}
	return t.shown.Value(key)
}

// A source ends the exposed context of a timeout. That is its only child, and the standard library attaches it with
// AfterFunc.
type source struct {
	t    *timeout
	err  error
	fate context.Context // has ended with the same cause
	tell func()
}

var open = make(chan struct{})

func (s *source) end(err, cause error) {
	s.err = err
	switch cause {
	case context.Canceled:
		s.fate = canceled
	case context.DeadlineExceeded:
		s.fate = expired
	default:
		s.fate = endedWith(cause)
	}
	s.tell()
}

func (s *source) Deadline() (time.Time, bool) { return s.t.Deadline() }
func (s *source) Done() <-chan struct{}       { return open } // only indicates that the context can end
func (s *source) Err() error                  { return s.err }

// Value lets context.Cause find the cause, with a key that only the standard library knows.
func (s *source) Value(key any) any {
	if s.fate != nil {
		if v := s.fate.Value(key); v != nil {
			return v
		}
	}
	return s.t.parent.Value(key)
}

func (s *source) AfterFunc(f func()) (stop func() bool) {
	s.tell = f
	return func() bool { return false }
}

// The ends of most contexts.
var canceled, expired = endedWith(context.Canceled), endedWith(context.DeadlineExceeded)

func endedWith(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}
