//go:build !linux

package servers

import (
	"fmt"
	"net"
	"strconv"
)

// claim reserves a port of 127.0.0.1, any with 0, until release is called. Outside of Linux no other socket can listen at a
// bound port, so claim binds the same UDP port. This excludes other users of claim.
func claim(port int) (taken int, release func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		return 0, nil, fmt.Errorf("claim port %d: %w", port, err)
	}
	defer l.Close()
	taken = l.Addr().(*net.TCPAddr).Port
	held, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(taken))
	if err != nil {
		return 0, nil, fmt.Errorf("claim port %d: %w", taken, err)
	}
	return taken, func() { held.Close() }, nil
}
