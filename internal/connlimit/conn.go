package connlimit

import (
	"container/list"
	"context"
	"net"
	"net/http"
	"sync"
)

// Listen bounds the connections of a listener. A connection over the bound replaces the one that has been idle for longest. If
// none is idle, it is closed.
func (c *Limiter) Listen(l net.Listener) net.Listener { return &listener{l, c, false} }

// Hold is like Listen for a server that does not report idle connections. No connection is replaced.
func (c *Limiter) Hold(l net.Listener) net.Listener { return &listener{l, c, true} }

type listener struct {
	net.Listener
	limiter *Limiter
	hold    bool
}

// Accept waits for the next connection within the bounds.
func (l *listener) Accept() (net.Conn, error) {
	for {
		n, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		setUnsent(n)
		if c := l.limiter.admit(n); c != nil {
			if l.hold {
				l.limiter.count(c, 1)
			}
			return c, nil
		}
		_ = n.Close()
	}
}

// A conn is a counted connection.
type conn struct {
	net.Conn
	limiter *Limiter
	from    string
	close   func() error

	// Guarded by limiter.mu.
	serves     int // number of requests
	at, atHome *list.Element
}

// admit counts a connection, or returns nil if the bounds do not allow it.
func (c *Limiter) admit(n net.Conn) *conn {
	in, out, why := c.place(n)
	if out != nil {
		_ = out.Close()
	}
	if why != "" {
		c.turned(why)
	}
	return in
}

// place adds a connection. It returns the connection to close, if it replaces one.
func (c *Limiter) place(n net.Conn) (in, out *conn, why string) {
	from := Address(n.RemoteAddr().String())
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.conns[from]
	switch {
	case h != nil && h.n >= c.bounds.CallerConnections && (!c.named || h.idle.Len() >= c.bounds.CallerConnections):
		why, out = CallerConnections, oldest(&h.idle)
	case c.total >= c.bounds.Connections:
		why, out = Connections, oldest(&c.idle)
	}
	if why != "" && out == nil {
		return nil, nil, why
	}
	if out != nil {
		c.forget(out)
	}
	if h = c.conns[from]; h == nil {
		h = new(home)
		c.conns[from] = h
	}
	h.n++
	c.total++
	in = &conn{Conn: n, limiter: c, from: from}
	in.close = sync.OnceValue(in.shut)
	c.rest(in)
	return in, out, why
}

func oldest(l *list.List) *conn {
	if e := l.Front(); e != nil {
		return e.Value.(*conn)
	}
	return nil
}

// rest marks a connection as idle. The caller holds the lock.
func (c *Limiter) rest(n *conn) {
	if h := c.conns[n.from]; h != nil && n.at == nil {
		n.at, n.atHome = c.idle.PushBack(n), h.idle.PushBack(n)
	}
}

// stir marks a connection as busy. The caller holds the lock.
func (c *Limiter) stir(n *conn) {
	if n.at != nil {
		c.idle.Remove(n.at)
		c.conns[n.from].idle.Remove(n.atHome)
		n.at, n.atHome = nil, nil
	}
}

// forget removes a connection from the counts, once. The caller holds the lock.
func (c *Limiter) forget(n *conn) {
	if n.from == "" {
		return
	}
	c.stir(n)
	c.total--
	h := c.conns[n.from]
	if h.n--; h.n == 0 {
		delete(c.conns, n.from)
	}
	n.from = ""
}

// Close implements net.Conn.
func (n *conn) Close() error { return n.close() }

func (n *conn) shut() error {
	n.limiter.mu.Lock()
	n.limiter.forget(n)
	n.limiter.mu.Unlock()
	return n.Conn.Close()
}

// CloseWrite lets net/http finish a response so that the client can read it before the connection closes.
func (n *conn) CloseWrite() error {
	if w, ok := n.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

type connKey struct{}

// Context is for http.Server.ConnContext. With it, requests keep their connection from being replaced.
func Context(ctx context.Context, c net.Conn) context.Context {
	for {
		switch n := c.(type) {
		case *conn:
			return context.WithValue(ctx, connKey{}, n)
		case interface{ NetConn() net.Conn }:
			c = n.NetConn()
		default:
			return ctx
		}
	}
}

// Serving marks the connection of a request as busy until done is called.
func Serving(r *http.Request) (done func()) {
	n, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		return func() {}
	}
	n.limiter.count(n, 1)
	return func() { n.limiter.count(n, -1) }
}

func (c *Limiter) count(n *conn, more int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.from == "" {
		return
	}
	if n.serves += more; n.serves == 0 {
		c.rest(n)
	} else {
		c.stir(n)
	}
}
