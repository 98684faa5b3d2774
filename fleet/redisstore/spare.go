package redisstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// A spare is a connection not in use. A goroutine of the dialer reads it to notice when it ends.
type spare struct {
	net.Conn
	peek *peek // nil if calls that run alone cannot use it
	made time.Time
	over chan struct{} // closed when the read has ended
	err  error         // that ended the read
}

// keep makes c the spare connection of a node. The caller holds the lock.
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

// free ends the read and reports whether the connection is usable.
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

// replace makes another spare connection after s ended, if calls have no other connection. It pauses first, in case
// the server closes each connection immediately.
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

// drop removes s if it is still the node's spare connection, and reports whether it was.
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

// shared reports whether there is a shared connection to a node that rueidis reads, so that rueidis notices its end
// immediately. The caller holds the lock.
func (d *dialer) shared(addr string) bool {
	for c := range d.open {
		if c.addr == addr && c.own == nil && c.read.Load() {
			return true
		}
	}
	return false
}

// openTo returns the number of connections to a node that rueidis has. The caller holds the lock.
func (d *dialer) openTo(addr string) (n int) {
	for c := range d.open {
		if c.addr == addr {
			n++
		}
	}
	return n
}
