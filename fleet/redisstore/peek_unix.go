//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package redisstore

import (
	"crypto/tls"
	"net"
	"syscall"
)

// A peek checks for received bytes on a connection without consuming them. It is not safe for concurrent use.
type peek struct {
	conn syscall.RawConn
	look func(fd uintptr) // allocated once, so that ended allocates nothing
	some bool
	err  error
}

// newPeek returns nil for a connection that is not a socket.
func newPeek(c net.Conn) *peek {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	socket, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	conn, err := socket.SyscallConn()
	if err != nil {
		return nil
	}
	p := &peek{conn: conn}
	p.look = func(fd uintptr) {
		var b [1]byte
		_, _, p.err = syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK)
		p.some = p.err != syscall.EAGAIN && p.err != syscall.EINTR
	}
	return p
}

// ended reports whether the connection has ended or has unexpected bytes.
func (p *peek) ended() bool { return p.conn.Control(p.look) != nil || p.some }
