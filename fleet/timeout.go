package fleet

import (
	"context"
	"sync"
	"time"
)

// A timeout is a context that ends after a while, or with another one, and can be used again for the next
// call, so that a decision allocates nothing for it.
// The zero timeout has not begun. One call uses it at a time; its client may look at it from any goroutine, and for as long as
// the call lasts: a client that keeps the context longer would see that of the next call.
type timeout struct {
	mu    sync.Mutex
	at    time.Time     // when it ends
	done  chan struct{} // closed when it has; another one for the next call then
	err   error         // why it has; nil before
	timer *time.Timer
	calls int         // that began
	stop  func() bool // ends that it ends with another one; nil if it does not
}

var _ context.Context = (*timeout)(nil)

// begin lets the context end after d, or with another one.
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

// end is called when the call is over.
func (t *timeout) end() {
	t.timer.Stop()
	if t.stop != nil {
		t.stop()
	}
}

// fire may be late, for a call that has ended already.
func (t *timeout) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !time.Now().Before(t.at) {
		t.ends(context.DeadlineExceeded)
	}
}

// cut ends the nth call's context, if that is not over.
func (t *timeout) cut(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.calls == n {
		t.ends(context.Canceled)
	}
}

// ends ends the context; the lock is held.
func (t *timeout) ends(err error) {
	if t.err == nil {
		t.err = err
		close(t.done)
	}
}

// Deadline, Done, Err and Value are those of a context.
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
