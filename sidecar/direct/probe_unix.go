//go:build unix

package direct

import (
	"net"
	"syscall"
)

// pooled reports whether this system can detect activity on an idle connection.
const pooled = true

// A probe checks an idle connection without blocking.
type probe struct {
	raw  syscall.RawConn // nil if the connection has no file descriptor
	look func(fd uintptr) bool
	live bool
}

func (p *probe) of(c net.Conn) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return
	}
	p.raw = raw
	p.look = func(fd uintptr) bool {
		var b [1]byte
		n, err := syscall.Read(int(fd), b[:])
		p.live = n < 0 && (err == syscall.EAGAIN || err == syscall.EWOULDBLOCK)
		return true // do not block
	}
}

func (p *probe) can() bool { return p.raw != nil }

// silent reports whether the peer has neither sent data nor closed the connection.
func (p *probe) silent() bool {
	p.live = false
	return p.raw.Read(p.look) == nil && p.live
}
