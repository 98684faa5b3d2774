package plain

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// States of a connection.
const (
	fresh  int32 = iota // no request yet
	idle                // waits for the next request
	busy                // serves a request
	closed              // was closed while it waited
)

// bufferSize is the longest head of a plain request, and mostBody its longest body.
const (
	bufferSize = 4 << 10
	mostBody   = 16 << 10
)

// arriving is how long a connection waits for the rest of a partial request. Slower requests are left to net/http.
const arriving = 10 * time.Millisecond

// newborn is how long a connection without a request stays open after the listener closes, as in net/http: its
// request may be in transit.
const newborn = 5 * time.Second

// A conn is a connection whose requests have been plain so far.
type conn struct {
	l      *Listener
	net    net.Conn
	base   context.Context // values of the connection; it does not end
	remote string
	state  atomic.Int32
	born   time.Time
	served bool                     // has had a response
	ended  <-chan struct{}          // closed when all calls end; nil if they do not
	cause  atomic.Pointer[lifetime] // of the request that is being served; nil for none

	buf        []byte
	have       int // bytes read into buf
	heads      memory
	request    http.Request // the template of requests
	later      *time.Timer  // starts the watch of the present request's client; nil until first needed
	readUntil  time.Time    // the read deadline in force; zero for none
	writeUntil time.Time    // the write deadline in force; zero for none
	writeBy    time.Time    // the handler's deadline for writes; zero for none
	date       []byte       // the last Date line
	second     int64        // the second of that line
}

func newConn(l *Listener, n net.Conn) *conn {
	return &conn{l: l, net: n, remote: n.RemoteAddr().String(), born: time.Now()}
}

// endIfIdle closes a connection that waits for a request. The next request may have arrived without having been read.
func (c *conn) endIfIdle() {
	switch {
	case c.state.CompareAndSwap(idle, closed), time.Since(c.born) > newborn && c.state.CompareAndSwap(fresh, closed):
		_ = c.net.Close()
	case c.state.Load() == fresh:
		c.hurry()
	}
}

// hurry limits the wait of a new connection to newborn.
func (c *conn) hurry() { _ = c.net.SetReadDeadline(c.born.Add(newborn)) }

// gone cancels the present request because its client has disconnected.
func (c *conn) gone() {
	if t := c.cause.Load(); t != nil {
		t.cancel()
	}
}

// serve serves requests until one is not plain, or there are no more.
func (c *conn) serve() {
	defer c.l.leave(c)
	defer func() { // a panic outside the handler; a panic in the handler also ends only its own connection
		if v := recover(); v != nil {
			c.l.logf("http: panic serving %v: %v\n%s", c.remote, v, debug.Stack())
			_ = c.net.Close()
		}
	}()
	base := context.Background()
	if of := c.l.server.BaseContext; of != nil {
		base = of(c.l)
	}
	defer context.AfterFunc(base, c.gone)()
	c.base = context.WithValue(context.WithValue(context.WithoutCancel(base), http.ServerContextKey, c.l.server), http.LocalAddrContextKey, c.net.LocalAddr())
	if with := c.l.server.ConnContext; with != nil {
		c.base = with(c.base, c.net)
	}
	c.ended = base.Done()
	c.request = http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, RemoteAddr: c.remote}
	c.buf = make([]byte, bufferSize+1) // one byte more for the watch of a client
	for c.next() {
		h, ok := c.heads.parse(c.buf[:c.have], c.l.lines)
		if !ok {
			c.handOver(c.buf[:c.have])
			return
		}
		body, whole := c.body(h)
		if !whole {
			c.handOver(append(c.buf[:h.size:h.size], body...))
			return
		}
		if !c.respond(h, body) {
			break
		}
	}
	_ = c.net.Close()
}

// next waits for the beginning of a request.
func (c *conn) next() bool {
	was := c.state.Load()
	if was == fresh {
		c.readBy(time.Now(), c.l.server.ReadHeaderTimeout)
		if c.l.stopping() { // it may have checked this connection earlier
			c.hurry()
		}
		return c.read() && c.state.CompareAndSwap(fresh, busy)
	}
	// Like net/http, skip empty lines: some clients send a superfluous one after a POST.
	for c.have < begun {
		if c.state.Store(idle); c.l.stopping() { // it may have checked this connection earlier
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

// begun is how many bytes count as the beginning of a request.
const begun = 4

// read reads the available bytes.
func (c *conn) read() bool {
	for {
		n, err := c.net.Read(c.buf[c.have:bufferSize])
		if c.have += n; n > 0 || err != nil {
			return n > 0
		}
	}
}

// readBy sets the read deadline. An existing deadline that is up to 25% later is kept, so that it need not be set
// each time.
func (c *conn) readBy(now time.Time, d time.Duration) {
	if d <= 0 {
		return
	}
	spare := d / 4
	switch left := c.readUntil.Sub(now); {
	case c.readUntil.IsZero():
		spare = 0
	case left >= d && left <= d+spare:
		return
	}
	c.readUntil = now.Add(d + spare)
	_ = c.net.SetReadDeadline(c.readUntil)
}

// body returns the body of a request whose head has been read, in separate memory, and removes it from the buffer. If
// the body is incomplete, or the memory budget has no room, it returns the available part. The caller must release
// the memory of a whole body.
func (c *conn) body(h head) (body []byte, whole bool) {
	if h.length > 0 {
		if !buffers.Bodies.Take(int64(h.length)) {
			return c.buf[h.size:c.have], false
		}
		defer func() {
			if !whole {
				buffers.Bodies.Give(int64(h.length))
			}
		}()
		body = make([]byte, h.length)
	}
	n := copy(body, c.buf[h.size:c.have])
	if n == h.length {
		c.have = copy(c.buf, c.buf[h.size+n:c.have])
		return body, true
	}
	c.readUntil = time.Time{}
	c.readBy(time.Now(), arriving)
	more, err := io.ReadFull(c.net, body[n:])
	if err != nil && c.l.stopping() { // net/http will not accept it any more
		c.readUntil = time.Time{}
		c.readBy(time.Now(), newborn)
		n += more
		more, err = io.ReadFull(c.net, body[n:])
	}
	c.readUntil, c.have = time.Time{}, 0
	_ = c.net.SetReadDeadline(c.readUntil)
	return body[:n+more], err == nil
}

// handOver passes the connection to net/http, with all bytes read so far.
func (c *conn) handOver(first []byte) {
	if c.served && bytes.HasPrefix(first, []byte("PRI ")) { // HTTP/2 begins with a connection, and not within it
		_ = c.net.Close()
		return
	}
	_ = c.net.SetDeadline(time.Time{})
	select {
	case c.l.ready <- &handed{Conn: c.net, first: first}:
	case <-c.l.end:
		_ = c.net.Close()
	}
}

// A whole is a body that has been read completely.
type whole struct{ bytes.Reader }

// Close implements io.Closer.
func (*whole) Close() error { return nil }

// A handed connection begins with the bytes that were read before it was handed over.
type handed struct {
	net.Conn
	first []byte
}

// Read implements io.Reader.
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

// NetConn returns the underlying connection.
func (h *handed) NetConn() net.Conn { return h.Conn }

// CloseWrite is called by net/http, so that a client can read its last response before the connection closes.
func (h *handed) CloseWrite() error {
	if w, ok := h.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

// respond serves a request, and reports whether another one may follow.
func (c *conn) respond(h head, body []byte) (again bool) {
	t := &lifetime{conn: c}
	t.Context, t.cancel = context.WithCancel(c.base)
	c.cause.Store(t)
	defer c.cause.Store(nil)
	select {
	case <-c.ended: // the calls ended before this one began
		t.cancel()
	default:
	}
	r := c.request.WithContext(t)
	r.Method, r.URL, r.RequestURI, r.Host = h.method, h.url(), h.target, h.host
	r.Header, r.Body, r.ContentLength = h.header, http.NoBody, int64(h.length)
	if h.length > 0 {
		r.Body = &whole{*bytes.NewReader(body)}
		defer buffers.Bodies.Give(int64(h.length))
	}
	c.writeBy = time.Time{}
	c.served = true
	w := newAnswer(c, h.method)
	defer w.release()
	answered := c.call(w, r)
	stays := t.end()
	if t.came {
		c.buf[c.have] = t.ahead[0]
		c.have++
	}
	return answered && w.end(!stays) && stays
}

// write writes a part of a response. It keeps a write deadline that is close enough to the wanted one.
func (c *conn) write(p []byte) error {
	now, by := time.Now(), c.writeBy
	if timeout := c.l.server.WriteTimeout; by.IsZero() && timeout > 0 {
		by = now.Add(timeout)
	}
	switch spare := by.Sub(now) / 4; {
	case by.IsZero(): // no deadline
	case !c.writeUntil.Before(by) && c.writeUntil.Sub(by) <= spare:
		by = c.writeUntil
	default:
		by = by.Add(spare)
	}
	if by != c.writeUntil {
		c.writeUntil = by
		_ = c.net.SetWriteDeadline(by)
	}
	_, err := c.net.Write(p)
	return err
}

// dateLine returns the Date line.
func (c *conn) dateLine(now time.Time) []byte {
	if s := now.Unix(); s != c.second {
		c.second = s
		c.date = append(now.UTC().AppendFormat(append(c.date[:0], "Date: "...), http.TimeFormat), "\r\n"...)
	}
	return c.date
}

// call calls the handler. It returns false if the handler panicked; then there is no response.
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
