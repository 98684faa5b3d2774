package plain

import (
	"context"
	"sync"
	"time"
)

// A lifetime is the context of a request: it ends with its answer, or when its caller leaves. That is looked for once
// somebody waits for its end.
type lifetime struct {
	context.Context // values of the connection
	conn            *conn

	mu    sync.Mutex
	done  chan struct{} // nil until somebody asks for it
	err   error
	watch chan struct{} // closed when the watch is over; nil if there is none
	ends  bool          // the request is answered, so the watch is to end
	ahead [1]byte       // what the watch has read of the next request
	came  bool
	left  bool // the caller has
}

// Deadline is context.Context's. There is none.
func (t *lifetime) Deadline() (time.Time, bool) { return time.Time{}, false }

// Err is context.Context's.
func (t *lifetime) Err() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.err
}

// Done is context.Context's. The first call begins to watch the caller.
func (t *lifetime) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		t.done = make(chan struct{})
		if t.err != nil {
			close(t.done)
		} else if !t.ends {
			t.watch = make(chan struct{})
			_ = t.conn.net.SetReadDeadline(time.Time{})
			go t.look()
		}
	}
	return t.done
}

// cancel ends it.
func (t *lifetime) cancel() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err != nil {
		return
	}
	if t.err = context.Canceled; t.done != nil {
		close(t.done)
	}
}

// look waits until the caller leaves, or sends the next request: then nobody knows any more.
func (t *lifetime) look() {
	defer close(t.watch)
	n, err := t.conn.net.Read(t.ahead[:])
	t.mu.Lock()
	t.came = n > 0
	t.left = err != nil && n == 0 && !t.ends
	left := t.left
	t.mu.Unlock()
	if left {
		t.cancel()
	}
}

// end ends it with the request, and reports whether the caller is still there as far as is known.
func (t *lifetime) end() (stays bool) {
	t.mu.Lock()
	t.ends = true
	watch := t.watch
	t.mu.Unlock()
	if watch != nil {
		_ = t.conn.net.SetReadDeadline(time.Unix(1, 0))
		<-watch
		t.conn.readUntil = time.Time{}
		_ = t.conn.net.SetReadDeadline(time.Time{})
	}
	t.cancel()
	return !t.left
}
