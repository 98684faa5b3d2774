package redisstore

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// connect connects to a server and waits until it responds.
func (d *dialer) connect(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	defer context.AfterFunc(d.ctx, cancel)()
	c, err := d.reach(ctx, addr, nd, config)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	c.SetDeadline(deadline)
	defer context.AfterFunc(ctx, func() { c.Close() })()
	if err := answers(c); err != nil {
		c.Close()
		return nil, fmt.Errorf("%s does not answer: %w", addr, err)
	}
	c.SetDeadline(time.Time{})
	return c, nil
}

func dialTCP(ctx context.Context, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
	if config == nil {
		return nd.DialContext(ctx, "tcp", addr)
	}
	return (&tls.Dialer{NetDialer: nd, Config: config}).DialContext(ctx, "tcp", addr)
}

// answers waits for any response. The kernel accepts connections even for a stopped process.
func answers(c net.Conn) error {
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err := bufio.NewReaderSize(c, 512).ReadSlice('\n')
	return err
}

// hand returns a connection for rueidis. own is nil if calls share it. Otherwise calls that run alone use it, and
// own detects its end.
func (d *dialer) hand(raw net.Conn, own *peek, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
	c := &conn{dialer: d, addr: addr, own: own}
	c.asideConn = asideConn{Conn: raw, made: time.Now(), replies: d.replies, heard: c.hear}
	c.refuses = func(why error) { // calls report this error until there is another connection
		d.mu.Lock()
		defer d.mu.Unlock()
		n := d.node(addr)
		n.said, n.saidAt = why, time.Now()
		if n.spare != nil && time.Since(n.spare.made) > longEnough { // its address was resolved before the failover
			n.spare.Close()
			n.spare = nil
		}
	}
	c.lost = func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.open, c)
		d.try(d.node(addr), addr, nd, config)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		raw.Close()
		return nil, errClosed
	}
	d.open[c] = struct{}{}
	n := d.node(addr)
	n.known()
	if d.openTo(addr) < mostOpen {
		d.try(n, addr, nd, config)
	}
	return c, nil
}

// mostOpen is the number of connections to a node: a shared one, and one for calls that run alone.
const mostOpen = 2

// A conn is a connection that rueidis uses. It records whether a caller waits for a response, and reports its loss.
type conn struct {
	asideConn
	dialer  *dialer
	addr    string
	own     *peek        // of a connection for calls that run alone; no goroutine reads it between calls
	read    atomic.Bool  // rueidis reads it continuously
	waiting atomic.Int64 // since when a sent request has had no response, in ns; 0 if none waits
	once    sync.Once
	lost    func()
}

func (c *conn) Write(b []byte) (int, error) {
	if c.waiting.Load() == 0 {
		if c.own != nil && (c.failed != nil || c.own.ended()) {
			return 0, c.down()
		}
		c.waiting.CompareAndSwap(0, time.Now().UnixNano())
	}
	return c.asideConn.Write(b)
}

// down returns an error after which the call uses another connection: this one sent nothing.
func (c *conn) down() error {
	c.dialer.mu.Lock()
	defer c.dialer.mu.Unlock()
	return &errDown{c.addr, c.dialer.node(c.addr).why()}
}

// SetDeadline notes that rueidis reads the connection continuously: it then sets no deadline.
func (c *conn) SetDeadline(t time.Time) error {
	if t.IsZero() {
		c.read.Store(true)
	}
	return c.asideConn.SetDeadline(t)
}

func (c *conn) hear() {
	c.waiting.Store(0)
	if c.dialer.abandoned.Load() != 0 {
		c.dialer.abandoned.Store(0)
	}
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.lost)
	return err
}
