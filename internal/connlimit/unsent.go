package connlimit

import "net"

// unsentBytes is the size of a response that the kernel buffers before earlier bytes have been sent. It does not bound bytes on
// the wire, so it does not slow down a connection.
//
// The system lets the send buffer of a connection grow to several megabytes, and fills it while the reader does not read: 300
// such readers held 0.9 GB. All connections of the container or machine share this memory and become slow when it is exhausted.
const unsentBytes = 128 << 10

// setUnsent bounds the kernel's buffer of unsent bytes, where the system supports it. It ignores connections other than TCP.
func setUnsent(c net.Conn) {
	tcp, ok := c.(*net.TCPConn)
	if !ok || notSentLowat == 0 {
		return
	}
	if raw, err := tcp.SyscallConn(); err == nil {
		_ = raw.Control(boundUnsent)
	}
}
