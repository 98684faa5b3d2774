package direct

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/textproto"
	"strconv"
	"sync/atomic"
	"time"
)

// mostHead is the longest head of a response in bytes, as in net/http.
const mostHead = 10 << 20

// atOnce is the size of the write buffer. It holds heads, and with them most bodies.
const atOnce = 8 << 10

var errLongHead = fmt.Errorf("the response headers have more than %d bytes", mostHead)

// A conn is a connection. It belongs to one request at a time, or is idle.
type conn struct {
	net     net.Conn
	address string
	in      *bufio.Reader
	out     *bufio.Writer
	left    int64     // bytes that may still be read
	heard   bool      // part of the response has arrived
	since   time.Time // when it became idle
	probe   probe
}

func newConn(c net.Conn, address string) *conn {
	n := &conn{net: c, address: address}
	n.in, n.out = bufio.NewReader(n), bufio.NewWriterSize(c, atOnce)
	n.probe.of(c)
	return n
}

// together is a writer that hides its Flush method from net/http, which would otherwise send the head separately if
// reading the body may block.
type together struct{ *bufio.Writer }

// Read implements io.Reader for in.
func (c *conn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, errLongHead
	}
	if int64(len(p)) > c.left {
		p = p[:c.left]
	}
	n, err := c.net.Read(p)
	c.left -= int64(n)
	c.heard = c.heard || n > 0
	return n, err
}

// ask sends a request and reads the head of the response. If it fails, it closes the connection.
func (c *conn) ask(t *Transport, r *http.Request) (*http.Response, error) {
	ctx := r.Context()
	stop := context.AfterFunc(ctx, func() { _ = c.net.Close() })
	resp, err := c.exchange(t, r)
	if err != nil {
		stop()
		_ = c.net.Close()
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, err
	}
	b := &body{t: t, c: c, ctx: ctx, stop: stop, whole: resp.Body, parts: len(resp.TransferEncoding) > 0, again: !resp.Close && resp.StatusCode > 199}
	c.left = math.MaxInt64
	if r.Method == http.MethodHead || resp.ContentLength == 0 || resp.StatusCode == http.StatusSwitchingProtocols {
		b.end(true)
		resp.Body = http.NoBody
	} else {
		resp.Body = b
	}
	return resp, nil
}

func (c *conn) exchange(t *Transport, r *http.Request) (*http.Response, error) {
	news := t.wants(r.Context())
	c.left, c.heard = mostHead, false
	err := r.Write(together{c.out})
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		return nil, fmt.Errorf("sending the request: %w", err)
	}
	if t.Headers > 0 {
		_ = c.net.SetReadDeadline(time.Now().Add(t.Headers))
		defer c.net.SetReadDeadline(time.Time{})
	}
	for {
		resp, err := http.ReadResponse(c.in, r)
		if err != nil {
			return nil, fmt.Errorf("reading the answer: %w", err)
		}
		if resp.StatusCode > 199 || resp.StatusCode < 100 || resp.StatusCode == http.StatusSwitchingProtocols {
			return resp, nil
		}
		if news != nil { // news also limits their number
			if err := news(resp.StatusCode, textproto.MIMEHeader(resp.Header)); err != nil {
				return nil, err
			}
			c.left = mostHead
		}
	}
}

// A body is the body of a response. At its end the connection becomes idle, if it is usable for another request: no
// further data has arrived, and neither side has closed it.
type body struct {
	t     *Transport
	c     *conn
	ctx   context.Context // of the request
	stop  func() bool     // ends the wait for the end of ctx
	whole io.Reader
	parts bool        // the body is chunked
	begun bool        // Read was called
	again bool        // the upstream keeps the connection open
	over  atomic.Bool // the body no longer owns the connection
	eof   bool        // Read has returned io.EOF; used by the reader only
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.over.Load() {
		if b.eof {
			return 0, io.EOF
		}
		return 0, b.why(errClosedBody)
	}
	b.begun = true
	n, err := b.whole.Read(p)
	if err == nil {
		return n, nil
	}
	b.eof = err == io.EOF
	if b.end(b.eof); !b.eof {
		err = b.why(err)
	}
	return n, err
}

// Ready reports whether Read can return data that arrived with the head, without waiting for the upstream. It may
// return false although data is available. Only the goroutine that reads may call it.
func (b *body) Ready() bool {
	if b.begun || b.over.Load() {
		return false
	}
	came, _ := b.c.in.Peek(b.c.in.Buffered())
	if b.parts {
		return wholeChunks(came)
	}
	return len(came) > 0
}

// wholeChunks reports whether the buffered data consists of complete chunks, without the last chunk. net/http's
// reader waits for the rest of a chunk whose size it knows.
func wholeChunks(came []byte) bool {
	for first := true; ; first = false {
		line, rest, known := bytes.Cut(came, []byte("\n"))
		if !known {
			return !first
		}
		line, _, _ = bytes.Cut(line, []byte(";"))
		size, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 32)
		if err != nil || size == 0 || uint64(len(rest)) < size {
			return false
		}
		if rest = rest[size:]; len(rest) < len("\r\n") {
			return true
		}
		came = rest[len("\r\n"):]
	}
}

var errClosedBody = errors.New("read from a closed body")

// why returns the reason for an early end of a body.
func (b *body) why(err error) error {
	if cause := context.Cause(b.ctx); cause != nil {
		return cause
	}
	return err
}

// Close implements io.Closer. It does not wait for the rest of a body.
func (b *body) Close() error {
	b.end(false)
	return nil
}

// end releases the connection, which is reusable if the whole body was read.
func (b *body) end(whole bool) {
	if b.over.Swap(true) {
		return
	}
	// The order matters: after stop has returned true, the end of ctx cannot close the connection under its next
	// request.
	if b.stop() && whole && b.again && b.c.in.Buffered() == 0 && b.t.idle.put(b.c, b.t.Most, b.t.IdleTime) {
		return
	}
	_ = b.c.net.Close()
}
