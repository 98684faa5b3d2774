package plain

import (
	"context"
	"sync"
	"time"
)

// noticed is how long a caller who leaves may not be noticed: most calls have ended by then, and need not be watched.
const noticed = 5 * time.Millisecond

// A lifetime is the context of a request: it ends with its answer, or when its caller leaves. That is looked for if
// somebody has asked for its end and it lasts.
type lifetime struct {
	context.Context // ends with cancel; has the values of the connection
	cancel          context.CancelFunc
	conn            *conn

	mu    sync.Mutex
	timed bool          // the connection's timer is set for it
	watch chan struct{} // closed when the watch is over; nil if there is none
	ends  bool          // the request is answered, so the watch is to end
	ahead [1]byte       // what the watch has read of the next request
	came  bool
	left  bool // the caller has
}

// Done is context.Context's. The first call has the caller watched.
func (t *lifetime) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.timed && !t.ends && t.Err() == nil {
		t.timed = true
		t.conn.lookLater()
	}
	return t.Context.Done()
}

// lookLater has the caller of the present request watched if that takes long. One timer does for all requests: when it
// is over late, the next one is watched early, which harms nobody.
func (c *conn) lookLater() {
	if c.later != nil {
		c.later.Reset(noticed)
		return
	}
	c.later = time.AfterFunc(noticed, func() {
		if t := c.cause.Load(); t != nil {
			t.look()
		}
	})
}

// look waits until the caller leaves, or sends the next request: then nobody knows any more.
func (t *lifetime) look() {
	t.mu.Lock()
	if t.ends || t.watch != nil {
		t.mu.Unlock()
		return
	}
	watch := make(chan struct{})
	t.watch = watch
	_ = t.conn.net.SetReadDeadline(time.Time{})
	t.mu.Unlock()
	defer close(watch)
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
	watch, timed := t.watch, t.timed
	t.mu.Unlock()
	if timed {
		t.conn.later.Stop()
	}
	if watch != nil {
		_ = t.conn.net.SetReadDeadline(time.Unix(1, 0))
		<-watch
		t.conn.readUntil = time.Time{}
		_ = t.conn.net.SetReadDeadline(time.Time{})
	}
	t.cancel()
	return !t.left
}
