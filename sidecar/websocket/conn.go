package websocket

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"

	ws "github.com/coder/websocket"
)

// A Conn is a WebSocket to the caller or to the upstream.
//
// The library takes a connection that ends between two frames of a message for the end of the message. So the reader
// below it records the end of the connection. The library reads further only to complete a message.
type Conn struct {
	*ws.Conn
	ended *source
}

// A source is the reader below a connection.
type source struct {
	from io.Reader
	last error // the error that came with the last bytes
	over atomic.Bool
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	if s.last != nil {
		s.over.Store(true)
		return 0, s.last
	}
	n, err := s.from.Read(p)
	if n > 0 && err != nil {
		s.last, err = err, nil
	}
	if err != nil {
		s.over.Store(true)
	}
	return n, err
}

// cut closes the connection below the library, which may be reading.
func (s *source) cut() {
	if c, ok := s.from.(io.Closer); ok {
		_ = c.Close()
	}
}

// A body is the connection in the upstream's response.
type body struct {
	io.ReadWriteCloser
	*source
}

func (b *body) Read(p []byte) (int, error) { return b.source.Read(p) }

// A taken connection belongs to the caller.
type taken struct {
	net.Conn
	*source
}

func (c *taken) Read(p []byte) (int, error) { return c.source.Read(p) }

// A taker replaces the connection of a response by one that reads through a source.
type taker struct {
	http.ResponseWriter
	source source
}

// Hijack implements http.Hijacker.
func (t *taker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(t.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	t.source.from = c
	return &taken{c, &t.source}, rw, nil
}
