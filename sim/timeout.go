package sim

import (
	"context"
	"time"
)

// beginning is the instant 0 for those who ask a context for its deadline as a
// point in time.
var beginning = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A timeout is a context that ends at an instant of its world. It tells those
// who wait for it in the order in which they came; the standard library's
// contexts tell theirs in an order of chance.
//
// For the sake of contexts that others put below it, what shows is one of the
// standard library's, whose only parent is the timeout's source.
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

// start puts the timeout below its parent, and on the agenda unless an ancestor
// ends first.
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

// look ends the timeout if its parent has ended without telling: one that is not
// of this world does not.
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

// finish ends the context; only the first end counts.
func (t *timeout) finish(err, cause error) {
	if t.source.err != nil {
		return
	}
	t.source.end(err, cause)
	t.shut(nil) // has ended already
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

// A source ends the context that a timeout shows, and no other: that is its only
// child, and the standard library attaches it by AfterFunc.
type source struct {
	t    *timeout
	err  error
	fate context.Context // has ended with the same cause
	tell func()
}

var open = make(chan struct{})

func (s *source) end(err, cause error) {
	if s.err, s.fate = err, canceled; cause != context.Canceled {
		s.fate = endedWith(cause)
	}
	s.tell()
}

func (s *source) Deadline() (time.Time, bool) { return s.t.Deadline() }
func (s *source) Done() <-chan struct{}       { return open } // only to say that there is an end
func (s *source) Err() error                  { return s.err }

// Value lets context.Cause find the cause: it asks for a key that is known to
// the standard library only.
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

// canceled is what most contexts end as.
var canceled = endedWith(context.Canceled)

func endedWith(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}
