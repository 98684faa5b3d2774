package plain

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// What a connection does.
const (
	fresh  int32 = iota // has said nothing yet
	idle                // waits for another request
	busy                // serves one
	closed              // was ended while it waited
)

// bufferSize is the longest plain request, head and body together.
const bufferSize = 4 << 10

// newborn is how long a connection that has said nothing yet is spared when the listener closes, as net/http spares
// it: its request may be on its way.
const newborn = 5 * time.Second

// A conn is a connection whose requests have been plain so far.
type conn struct {
	l      *Listener
	net    net.Conn
	base   context.Context // values of the connection
	remote string
	state  atomic.Int32
	born   time.Time
	cause  atomic.Pointer[lifetime] // of the request that is being served; nil for none

	buf        []byte
	have       int // bytes of buf that have come
	heads      memory
	request    http.Request // of which each is made
	answer     answer
	readUntil  time.Time // the deadline for reads that is set; zero for none
	writeUntil time.Time
}

func newConn(l *Listener, n net.Conn) *conn {
	return &conn{l: l, net: n, remote: n.RemoteAddr().String(), born: time.Now()}
}

// endIfIdle closes a connection that waits for a request. The next one may have come, and not have been read.
func (c *conn) endIfIdle() {
	if c.state.CompareAndSwap(idle, closed) || time.Since(c.born) > newborn && c.state.CompareAndSwap(fresh, closed) {
		_ = c.net.Close()
	}
}

// gone says to who serves a request that its caller has left.
func (c *conn) gone() {
	if t := c.cause.Load(); t != nil {
		t.cancel()
	}
}

// serve serves requests until one is not plain, or there are no more.
func (c *conn) serve() {
	defer c.l.leave(c)
	c.base = context.WithValue(context.WithValue(context.Background(), http.ServerContextKey, c.l.server), http.LocalAddrContextKey, c.net.LocalAddr())
	if with := c.l.server.ConnContext; with != nil {
		c.base = with(c.base, c.net)
	}
	c.request = http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: c.remote}
	c.buf = make([]byte, bufferSize+1) // one for what is read while a caller is watched
	for c.next() {
		h, ok := c.heads.parse(c.buf[:c.have], c.l.lines)
		if !ok || h.size+h.length > bufferSize || !c.whole(h.size+h.length) {
			c.handOver()
			return
		}
		if !c.respond(h) {
			_ = c.net.Close()
			return
		}
		c.have = copy(c.buf, c.buf[h.size+h.length:c.have])
	}
	_ = c.net.Close()
}

// next waits for a request, of which something has come then.
func (c *conn) next() bool {
	was := c.state.Load()
	if was == fresh {
		c.readBy(time.Now(), c.l.server.ReadHeaderTimeout)
		return c.read() && c.state.CompareAndSwap(fresh, busy)
	}
	// As net/http has it, which spares an empty line after a POST, too: some clients send one that nobody asked for.
	for c.have < begun {
		if c.state.Store(idle); c.l.stopping() { // and may have looked at this connection before
			return false
		}
		c.readBy(time.Now(), c.l.server.IdleTimeout)
		if !c.read() || !c.state.CompareAndSwap(idle, busy) {
			return false
		}
	}
	empty := 0
	for empty < begun && (c.buf[empty] == '\r' || c.buf[empty] == '\n') {
		empty++
	}
	c.have = copy(c.buf, c.buf[empty:c.have])
	return true
}

// begun is how much of another request must have come for it to be one.
const begun = 4

// read reads what has come.
func (c *conn) read() bool {
	n, _ := c.net.Read(c.buf[c.have:bufferSize])
	c.have += n
	return n > 0
}

// readBy bounds reads by about so much: one that is set already and is not over soon stays.
func (c *conn) readBy(now time.Time, d time.Duration) {
	if d <= 0 {
		return
	}
	if left := c.readUntil.Sub(now); c.readUntil.IsZero() || left > d || left < d*3/4 {
		c.readUntil = now.Add(d)
		_ = c.net.SetReadDeadline(c.readUntil)
	}
}

// whole waits for the rest of a request of so many bytes. If that does not come, or slowly, it is net/http's to say
// what becomes of it.
func (c *conn) whole(size int) bool {
	if c.have >= size {
		return true
	}
	c.readUntil = time.Time{}
	c.readBy(time.Now(), c.l.server.ReadHeaderTimeout)
	n, err := io.ReadAtLeast(c.net, c.buf[c.have:bufferSize], size-c.have)
	c.have += n
	return err == nil
}

// handOver leaves the connection to net/http, with all that has come.
func (c *conn) handOver() {
	_ = c.net.SetDeadline(time.Time{})
	select {
	case c.l.ready <- &handed{Conn: c.net, first: c.buf[:c.have]}:
	case <-c.l.end:
		_ = c.net.Close()
	}
}

// A handed connection begins with what was read of it here.
type handed struct {
	net.Conn
	first []byte
}

// Read is io.Reader's.
func (h *handed) Read(p []byte) (int, error) {
	if len(h.first) == 0 {
		return h.Conn.Read(p)
	}
	n := copy(p, h.first)
	if h.first = h.first[n:]; len(h.first) == 0 {
		h.first = nil
	}
	return n, nil
}

// NetConn is the connection itself.
func (h *handed) NetConn() net.Conn { return h.Conn }

// CloseWrite is for net/http, which lets a client read its last answer before it closes.
func (h *handed) CloseWrite() error {
	if w, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// respond answers a request, which is in the buffer whole, and reports whether there may be another.
func (c *conn) respond(h head) (again bool) {
	t := &lifetime{Context: c.base, conn: c}
	c.cause.Store(t)
	defer c.cause.Store(nil)
	body := &whole{*bytes.NewReader(c.buf[h.size : h.size+h.length])}
	r := c.request.WithContext(t)
	r.Method, r.URL, r.RequestURI, r.Host = h.method, &url.URL{Path: h.path}, h.path, h.host
	r.Header, r.Body, r.ContentLength = h.header, body, int64(h.length)
	w := &c.answer
	w.begin()
	answered := c.call(w, r)
	stays := t.end()
	body.Reset(nil) // the buffer is the next request's
	if t.came {
		c.buf[c.have] = t.ahead[0]
		c.have++
	}
	if !answered {
		return false
	}
	last := !stays || c.l.stopping() || w.header.Get("Connection") != ""
	now := time.Now()
	if timeout := c.l.server.WriteTimeout; timeout > 0 && c.writeUntil.Sub(now) < timeout/2 {
		c.writeUntil = now.Add(timeout)
		_ = c.net.SetWriteDeadline(c.writeUntil)
	}
	_, err := c.net.Write(w.bytes(now, last))
	return err == nil && !last
}

// call calls the handler, and reports false if it panicked: then there is no answer.
func (c *conn) call(w *answer, r *http.Request) (answered bool) {
	defer func() {
		if v := recover(); v != nil && v != http.ErrAbortHandler {
			c.l.logf("http: panic serving %v: %v\n%s", c.remote, v, debug.Stack())
		}
		if !answered { // also if the handler ends its goroutine
			_ = c.net.Close()
		}
	}()
	c.l.server.Handler.ServeHTTP(w, r)
	return true
}

// A whole body is one that has come.
type whole struct{ bytes.Reader }

// Close is io.Closer's.
func (*whole) Close() error { return nil }
