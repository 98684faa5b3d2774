package connlimit

import (
	"net"
	"syscall"
	"testing"
)

// If a reader stops in the middle of a response, the kernel holds little of it: at most unsentBytes more than it has sent, on
// an accepted connection.
func TestAcceptedConnectionsBoundUnsentBytes(t *testing.T) {
	for name, listen := range map[string]func(*Limiter, net.Listener) net.Listener{"Listen": (*Limiter).Listen, "Hold": (*Limiter).Hold} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			peer, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer peer.Close()
			c, err := listen(New(Bounds{}.WithDefaults(1000), nil), l).Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			raw, err := c.(*conn).Conn.(*net.TCPConn).SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			const notSentLowat = 25 // TCP_NOTSENT_LOWAT
			got := 0
			if e := raw.Control(func(fd uintptr) { got, err = syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, notSentLowat) }); e != nil || err != nil {
				t.Fatal(e, err)
			}
			if got != unsentBytes {
				t.Errorf("the kernel may hold %d bytes unsent, want %d", got, unsentBytes)
			}
		})
	}
}
