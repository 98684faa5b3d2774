package servers

import (
	"fmt"
	"syscall"
)

// claim reserves a port of 127.0.0.1, any with 0, until release is called. The port is bound without a listener: connections
// are refused, and the system gives it to no other program. A server that is told to listen there can, repeatedly, because it
// sets SO_REUSEADDR.
func claim(port int) (taken int, release func(), err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, nil, fmt.Errorf("claim a port: %w", err)
	}
	release = func() { _ = syscall.Close(fd) }
	if err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err == nil { // fails if another socket has it
		err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	}
	if err == nil {
		var at syscall.Sockaddr
		if at, err = syscall.Getsockname(fd); err == nil {
			return at.(*syscall.SockaddrInet4).Port, release, nil
		}
	}
	release()
	return 0, nil, fmt.Errorf("claim port %d: %w", port, err)
}
