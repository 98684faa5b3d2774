package plain

import (
	"context"
	"sync"
	"time"
)

// noticed is how long a disconnect may stay unnoticed. Most calls have ended by then and need no watch.
const noticed = 5 * time.Millisecond

// A lifetime is the context of a request. It ends with the response, or when the client disconnects. The client is
// watched only if the handler uses Done and the request takes long.
type lifetime struct {
	context.Context // ends with cancel; has the connection's values
	cancel          context.CancelFunc
	conn            *conn

	mu    sync.Mutex
	timed bool          // the connection's timer is set for it
	watch chan struct{} // closed when the watch ends; nil if there is none
	ends  bool          // the request has its response, so the watch must end
	ahead [1]byte       // the byte of the next request that the watch has read
	came  bool
	left  bool // the client has disconnected
}

// Done implements context.Context. The first call schedules the watch of the client.
func (t *lifetime) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.timed && !t.ends && t.Err() == nil {
		t.timed = true
		t.conn.lookLater()
	}
	return t.Context.Done()
}

// lookLater watches the client of the present request if that takes long. One timer serves all requests. If it fires
// late, the next request is watched early, which is harmless.
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

// look waits until the client disconnects or sends the next request. After that a disconnect cannot be detected.
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

// end ends the lifetime with the request, and reports whether the client seems to be still connected.
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
