package front

import (
	"bytes"
	"context"
	"crypto/tls"
	"net"
	"sync/atomic"
)

// A conn watches the heads of incoming requests. net/http removes Content-Length if there is also Transfer-Encoding, without
// reporting it. Such a connection must not be used again (RFC 9112 6.3): the following bytes may have been intended as a part
// of this request.
type conn struct {
	net.Conn
	doubtful atomic.Bool
	heads    heads // used only by the reading goroutine
}

// secured is a conn whose TLS state net/http can read.
type secured struct {
	*conn
	tls *tls.Conn
}

func (c secured) ConnectionState() tls.ConnectionState { return c.tls.ConnectionState() }

func watch(c net.Conn, t *tls.Conn) net.Conn {
	if t != nil {
		return secured{&conn{Conn: c}, t}
	}
	return &conn{Conn: c}
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.heads.see(p[:n]) {
		c.doubtful.Store(true)
	}
	return n, err
}

// NetConn returns the wrapped connection.
func (c *conn) NetConn() net.Conn { return c.Conn }

// CloseWrite lets net/http finish a response so that the client can read it before the connection closes.
func (c *conn) CloseWrite() error {
	if w, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return w.CloseWrite()
	}
	return nil
}

type connKey struct{}

// Context is for http.Server.ConnContext.
func Context(ctx context.Context, c net.Conn) context.Context {
	switch c := c.(type) {
	case *conn:
		return context.WithValue(ctx, connKey{}, c)
	case secured:
		return context.WithValue(ctx, connKey{}, c.conn)
	}
	return ctx
}

// Doubtful reports whether the connection of a request must close after the response.
func Doubtful(ctx context.Context) bool {
	c, ok := ctx.Value(connKey{}).(*conn)
	return ok && c.doubtful.Load()
}

// heads finds heads with two different declarations of a request's end. It does not know where bodies are. If a body looks like
// such a head, the connection closes, without other harm.
type heads struct {
	line          [20]byte // beginning of the current line
	have          int
	length, coded bool // whether the current head has such lines
	deaf          bool // the connection uses HTTP/2
	begun         bool
}

var (
	contentLength    = []byte("content-length")
	transferEncoding = []byte("transfer-encoding")
	preface          = []byte("PRI * HTTP/2.0")
)

// see processes read bytes and reports whether a head has both declarations.
func (h *heads) see(p []byte) (both bool) {
	for len(p) > 0 && !h.deaf {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			h.have += copy(h.line[h.have:], p)
			return both
		}
		line := p[:end]
		if p = p[end+1:]; h.have > 0 {
			h.have += copy(h.line[h.have:], line)
			line, h.have = h.line[:h.have], 0
		}
		if h.begun && len(line) > 1 && line[0]|0x20 != 'c' && line[0]|0x20 != 't' {
			continue
		}
		h.ended(line)
		both = both || h.length && h.coded
	}
	return both
}

// ended processes a complete line.
func (h *heads) ended(line []byte) {
	line = bytes.TrimRight(line, "\r")
	switch name, _, field := bytes.Cut(line, []byte(":")); {
	case len(line) == 0:
		h.length, h.coded = false, false
	case !h.begun && bytes.HasPrefix(line, preface):
		h.deaf = true
	case field:
		name = bytes.TrimSpace(name)
		h.length = h.length || bytes.EqualFold(name, contentLength)
		h.coded = h.coded || bytes.EqualFold(name, transferEncoding)
	}
	h.begun = true
}
