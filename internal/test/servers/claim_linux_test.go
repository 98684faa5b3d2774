package servers

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// While a server is down, no program that requests any port gets its port, neither to listen nor for a connection. The test
// restricts the range of ports to this one, or tries often where the system does not support that (before Linux 6.3).
func TestNobodyIsGivenAPortThatIsClaimed(t *testing.T) {
	port := Port(t)
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	here, to := [4]byte{127, 0, 0, 1}, elsewhere.Addr().(*net.TCPAddr).Port
	ways := map[string]func(fd int) error{
		"to listen":  func(fd int) error { return syscall.Bind(fd, &syscall.SockaddrInet4{Addr: here}) },
		"to connect": func(fd int) error { return syscall.Connect(fd, &syscall.SockaddrInet4{Addr: here, Port: to}) },
	}
	for _, only := range []bool{true, false} {
		for name, how := range ways {
			for range 500 {
				given, narrowed := asks(t, port, only, how)
				if given == port || narrowed && given != 0 {
					t.Fatalf("%s: given %d", name, given)
				}
				if narrowed {
					break
				}
			}
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)) // the server returns and ends
			if err != nil {
				t.Fatal(err)
			}
			l.Close()
		}
	}
}

// asks requests any port, from a range of one port if the system supports it, and returns the port or 0.
func asks(t *testing.T, one int, only bool, how func(fd int) error) (given int, narrowed bool) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	const ipLocalPortRange = 51 // since Linux 6.3
	narrowed = only && syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipLocalPortRange, one|one<<16) == nil
	switch err := how(fd); {
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, syscall.EADDRNOTAVAIL):
		return 0, narrowed
	case err != nil:
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	return at.(*syscall.SockaddrInet4).Port, narrowed
}
