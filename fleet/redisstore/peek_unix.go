//go:build linux || darwin || freebsd || netbsd || openbsd || dragonfly

package redisstore

import (
	"crypto/tls"
	"net"
	"syscall"
)

// A peek looks what has come on a connection, and leaves it there. One goroutine at a time may use it.
type peek struct {
	conn syscall.RawConn
	look func(fd uintptr) // made once: a look allocates nothing
	some bool
	err  error
}

// newPeek is nil for a connection that cannot be looked at.
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

// ended reports whether the connection has ended, or anything has come though nobody asked.
func (p *peek) ended() bool { return p.conn.Control(p.look) != nil || p.some }
