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

// connect connects to a server that answers.
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

// answers waits until the server says anything at all: the kernel accepts
// connections for a process that is halted.
func answers(c net.Conn) error {
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return err
	}
	_, err := bufio.NewReaderSize(c, 512).ReadSlice('\n')
	return err
}

// hand makes a connection one that the client may have: for calls that are alone, one that can be looked at.
func (d *dialer) hand(raw net.Conn, own *peek, addr string, nd *net.Dialer, config *tls.Config) (net.Conn, error) {
	c := &conn{dialer: d, addr: addr, own: own}
	c.asideConn = asideConn{Conn: raw, made: time.Now(), replies: d.replies, heard: c.hear}
	c.refuses = func(why error) { // who asks before there is another connection is told
		d.mu.Lock()
		defer d.mu.Unlock()
		n := d.node(addr)
		n.said, n.saidAt = why, time.Now()
		if n.spare != nil && time.Since(n.spare.made) > longEnough { // it leads where the name led then
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

// mostOpen is how many connections to a node there are: the one that all calls share, and one for calls that are alone.
const mostOpen = 2

// A conn knows whether somebody waits for an answer, and when it is lost.
type conn struct {
	asideConn
	dialer  *dialer
	addr    string
	own     *peek        // of one that calls that are alone have, one after the other; nobody reads it between them
	read    atomic.Bool  // the client reads it all the time
	waiting atomic.Int64 // since when nothing was heard though something was sent, in ns; 0 if not
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

// down is an error after which a call goes over another connection: nothing was sent over this one.
func (c *conn) down() error {
	c.dialer.mu.Lock()
	defer c.dialer.mu.Unlock()
	return &errDown{c.addr, c.dialer.node(c.addr).why()}
}

// SetDeadline is called without one when the client begins to read the connection all the time.
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
