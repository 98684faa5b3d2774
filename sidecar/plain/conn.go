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

// What a connection does.
const (
	fresh  int32 = iota // has said nothing yet
	idle                // waits for another request
	busy                // serves one
	closed              // was ended while it waited
)

// bufferSize is the longest head of a plain request, and mostBody its longest body.
const (
	bufferSize = 4 << 10
	mostBody   = 16 << 10
)

// arriving is how long the rest of a request is waited for, of which a part has come. It is net/http's to say what
// becomes of one that comes slowly.
const arriving = 10 * time.Millisecond

// newborn is how long a connection that has said nothing yet is spared when the listener closes, as net/http spares
// it: its request may be on its way.
const newborn = 5 * time.Second

// A conn is a connection whose requests have been plain so far.
type conn struct {
	l      *Listener
	net    net.Conn
	base   context.Context // values of the connection; nothing ends it
	remote string
	state  atomic.Int32
	born   time.Time
	served bool                     // has had an answer
	ended  <-chan struct{}          // closed when all calls end; nil if they do not
	cause  atomic.Pointer[lifetime] // of the request that is being served; nil for none

	buf        []byte
	have       int // bytes of buf that have come
	heads      memory
	request    http.Request // of which each is made
	later      *time.Timer  // has the present request's caller watched; nil until somebody asks for that
	readUntil  time.Time    // the deadline for reads that is set; zero for none
	writeUntil time.Time    // that for writes
	writeBy    time.Time    // when the handler wants its writes to have ended; zero if at any time
	date       []byte       // as it was written last
	second     int64        // and when that was
}

func newConn(l *Listener, n net.Conn) *conn {
	return &conn{l: l, net: n, remote: n.RemoteAddr().String(), born: time.Now()}
}

// endIfIdle closes a connection that waits for a request. The next one may have come, and not have been read.
func (c *conn) endIfIdle() {
	switch {
	case c.state.CompareAndSwap(idle, closed), time.Since(c.born) > newborn && c.state.CompareAndSwap(fresh, closed):
		_ = c.net.Close()
	case c.state.Load() == fresh:
		c.hurry()
	}
}

// hurry has a connection that has said nothing yet wait no longer than it is spared.
func (c *conn) hurry() { _ = c.net.SetReadDeadline(c.born.Add(newborn)) }

// gone says to who serves a request that its caller has left.
func (c *conn) gone() {
	if t := c.cause.Load(); t != nil {
		t.cancel()
	}
}

// serve serves requests until one is not plain, or there are no more.
func (c *conn) serve() {
	defer c.l.leave(c)
	defer func() { // of anything but the handler, which ends its own connection alone, too
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
	c.buf = make([]byte, bufferSize+1) // one for what is read while a caller is watched
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

// next waits for a request, of which something has come then.
func (c *conn) next() bool {
	was := c.state.Load()
	if was == fresh {
		c.readBy(time.Now(), c.l.server.ReadHeaderTimeout)
		if c.l.stopping() { // and may have looked at this connection before
			c.hurry()
		}
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
	for {
		n, err := c.net.Read(c.buf[c.have:bufferSize])
		if c.have += n; n > 0 || err != nil {
			return n > 0
		}
	}
}

// readBy bounds reads by so much or, where a deadline is set already, by up to a quarter more: so it need not be set anew
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

// body is the body of a request whose head has come, in memory of its own, and is taken out of the buffer with it. If it
// has not come whole, or there is no room for it in memory, it is what has come. Who has it gives its room back.
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
	if err != nil && c.l.stopping() { // nobody else is there to serve it
		c.readUntil = time.Time{}
		c.readBy(time.Now(), newborn)
		n += more
		more, err = io.ReadFull(c.net, body[n:])
	}
	c.readUntil, c.have = time.Time{}, 0
	_ = c.net.SetReadDeadline(c.readUntil)
	return body[:n+more], err == nil
}

// handOver leaves the connection to net/http, with all that has come.
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

// A whole body is one that has come.
type whole struct{ bytes.Reader }

// Close is io.Closer's.
func (*whole) Close() error { return nil }

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

// respond answers a request, and reports whether there may be another.
func (c *conn) respond(h head, body []byte) (again bool) {
	t := &lifetime{conn: c}
	t.Context, t.cancel = context.WithCancel(c.base)
	c.cause.Store(t)
	defer c.cause.Store(nil)
	select {
	case <-c.ended: // before there was anything to end
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

// write writes a piece of an answer. A deadline that is set already and is about the one that is wanted stays.
func (c *conn) write(p []byte) error {
	now, by := time.Now(), c.writeBy
	if timeout := c.l.server.WriteTimeout; by.IsZero() && timeout > 0 {
		by = now.Add(timeout)
	}
	switch spare := by.Sub(now) / 4; {
	case by.IsZero(): // none
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

// dateLine is the line that says when it is.
func (c *conn) dateLine(now time.Time) []byte {
	if s := now.Unix(); s != c.second {
		c.second = s
		c.date = append(now.UTC().AppendFormat(append(c.date[:0], "Date: "...), http.TimeFormat), "\r\n"...)
	}
	return c.date
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
