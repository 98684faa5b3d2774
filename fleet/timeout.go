package fleet

import (
	"context"
	"sync"
	"time"
)

// A timeout is a context that ends after a while and can be used again for the next
// call, so that a decision allocates nothing for it.
// The zero timeout has not begun. One call uses it at a time; its client may look at it from any goroutine, and for as long as
// the call lasts: a client that keeps the context longer would see that of the next call.
type timeout struct {
	mu    sync.Mutex
	at    time.Time     // when it ends
	done  chan struct{} // closed when it has; another one for the next call then
	over  bool
	timer *time.Timer
}

var _ context.Context = (*timeout)(nil)

// begin lets the context end after d.
func (t *timeout) begin(d time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.at = time.Now().Add(d)
	if t.done == nil || t.over {
		t.done, t.over = make(chan struct{}), false
	}
	if t.timer == nil {
		t.timer = time.AfterFunc(d, t.fire)
	} else {
		t.timer.Reset(d)
	}
}

// end is called when the call is over.
func (t *timeout) end() { t.timer.Stop() }

// fire may be late, for a call that has ended already.
func (t *timeout) fire() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over && !time.Now().Before(t.at) {
		t.over = true
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
	if t.over {
		return context.DeadlineExceeded
	}
	return nil
}

func (t *timeout) Value(any) any { return nil }
