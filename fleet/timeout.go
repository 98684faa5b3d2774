package fleet

import (
	"context"
	"sync"
	"time"
)

// A timeout is a context that ends after a duration or with another context. It can be reused for the next
// call, so that a decision does not allocate for it.
//
// The zero timeout has not begun. One call uses it at a time. The store's client may use it from any goroutine
// during the call. A client that keeps it longer would see the context of the next call.
type timeout struct {
	mu    sync.Mutex
	at    time.Time     // the deadline
	done  chan struct{} // closed at the end; then the next call gets another one
	err   error         // why the context ended; nil before
	timer *time.Timer
	calls int         // number of calls so far
	stop  func() bool // detaches from the other context; nil if there is none
}

var _ context.Context = (*timeout)(nil)

// begin starts a context that ends after d or with another context.
func (t *timeout) begin(with context.Context, d time.Duration) {
	t.starts(d)
	t.stop = nil
	if with.Done() != nil {
		n := t.calls
		t.stop = context.AfterFunc(with, func() { t.cut(n) })
	}
}

func (t *timeout) starts(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls++
	t.at = time.Now().Add(d)
	if t.done == nil || t.err != nil {
		t.done, t.err = make(chan struct{}), nil
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.fire)
	} else {
		t.timer.Reset(d)
	}
}

// end must be called when the call is over.
func (t *timeout) end() {
	t.timer.Stop()
	if t.stop != nil {
		t.stop()
	}
}

// fire may run late, after its call has ended.
func (t *timeout) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !time.Now().Before(t.at) {
		t.ends(context.DeadlineExceeded)
	}
}

// cut ends the context of the nth call, if it is still in use.
func (t *timeout) cut(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == n {
		t.ends(context.Canceled)
	}
}

// ends ends the context. The lock is held.
func (t *timeout) ends(err error) {
	if t.err == nil {
		t.err = err
		close(t.done)
	}
}

// Deadline, Done, Err and Value implement context.Context.
func (t *timeout) Deadline() (time.Time, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.at, true
}

func (t *timeout) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.done
}

func (t *timeout) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

func (t *timeout) Value(any) any { return nil }
