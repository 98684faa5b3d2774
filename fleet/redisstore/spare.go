package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// A spare is a connection that nobody uses yet. A goroutine of the dialer reads it, to notice its end.
type spare struct {
	net.Conn
	peek *peek // nil means that it cannot be had for calls that are alone
	made time.Time
	over chan struct{} // closed when nobody reads it any more
	err  error         // that ended the reading
}

// keep makes a connection the spare one of a node. The lock is held.
func (d *dialer) keep(n *node, c net.Conn, addr string, nd *net.Dialer, config *tls.Config) {
	s := &spare{Conn: c, peek: newPeek(c), made: time.Now(), over: make(chan struct{})}
	n.spare = s
	d.wg.Go(func() {
		s.read()
		d.replace(n, s, addr, nd, config)
	})
}

var errUnasked = errors.New("the server sent an unexpected message")

func (s *spare) read() {
	defer close(s.over)
	var b [1]byte
	if _, s.err = s.Read(b[:]); s.err == nil {
		s.err = errUnasked
	}
}

// free ends the reading, and reports whether the connection is good.
func (s *spare) free() bool {
	s.SetReadDeadline(time.Unix(1, 0))
	<-s.over
	s.SetReadDeadline(time.Time{})
	if errors.Is(s.err, os.ErrDeadlineExceeded) {
		return true
	}
	s.Close()
	return false
}

// replace makes another spare connection where one ended and calls have nothing else, but not at once for a server
// that ends each as soon as it is made.
func (d *dialer) replace(n *node, s *spare, addr string, nd *net.Dialer, config *tls.Config) {
	if !d.drop(n, s, addr) {
		return
	}
	select {
	case <-d.ctx.Done():
	case <-time.After(latest - time.Since(s.made)):
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.shared(addr) {
		d.try(n, addr, nd, config)
	}
}

// drop reports whether the connection was the spare one still, which it is no longer.
func (d *dialer) drop(n *node, s *spare, addr string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n.spare != s {
		return false
	}
	n.spare, n.err = nil, fmt.Errorf("%s closed the connection: %w", addr, s.err)
	s.Close()
	return true
}

// shared reports whether there is a connection to a node that all calls share, and that the client reads: it hears
// of its end at once. The lock is held.
func (d *dialer) shared(addr string) bool {
	for c := range d.open {
		if c.addr == addr && c.own == nil && c.read.Load() {
			return true
		}
	}
	return false
}

// openTo is how many connections to a node the client has. The lock is held.
func (d *dialer) openTo(addr string) (n int) {
	for c := range d.open {
		if c.addr == addr {
			n++
		}
	}
	return n
}
