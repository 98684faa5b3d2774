package connlimit

import "net"

// unsentBytes is how much the kernel takes of an answer before the earlier bytes have been sent. It does not bound bytes on the
// wire, and so not how fast a connection is.
//
// The system lets the buffer of a connection grow to several megabytes, and fills it while the reader does not read: 300 such
// readers held 0.9 GB. That memory is shared by all connections of the container or machine, and all of them are slow
// when it is used up.
const unsentBytes = 128 << 10

// setUnsent bounds what the kernel takes to be sent, where the system can. Connections that are not TCP's stay as they are.
func setUnsent(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok || notSentLowat == 0 {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(boundUnsent)
	}
}
