//go:build !linux

package servers

import (
	"fmt"
	"net"
	"strconv"
)

// claim takes a port of 127.0.0.1, any with 0, until release is called. Elsewhere than on Linux a port that is bound is nobody
// else's to listen at, so the same port of UDP is held in its place: that keeps out those who choose theirs here, too.
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
