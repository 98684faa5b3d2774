package servers

import (
	"errors"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// While a server is away nobody is given its port who asks for any: neither to listen there nor for a connection. Whoever asks is
// told that any is this one.
func TestNobodyIsGivenAPortThatIsClaimed(t *testing.T) {
	port := Port(t)
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	to := elsewhere.Addr().(*net.TCPAddr).Port
	asks := func(of int, how func(fd int) error) error {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer syscall.Close(fd)
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
			t.Fatal(err)
		}
		const ipLocalPortRange = 51 // since Linux 6.3
		if err := syscall.SetsockoptInt(fd, syscall.IPPROTO_IP, ipLocalPortRange, of|of<<16); err != nil {
			t.Skipf("the system cannot be told that any port is %d: %v", of, err)
		}
		return how(fd)
	}
	here := [4]byte{127, 0, 0, 1}
	for name, how := range map[string]func(fd int) error{
		"to listen":  func(fd int) error { return syscall.Bind(fd, &syscall.SockaddrInet4{Addr: here}) },
		"to connect": func(fd int) error { return syscall.Connect(fd, &syscall.SockaddrInet4{Addr: here, Port: to}) },
	} {
		if err := asks(port, how); !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("%s: %v, want that there is none", name, err)
		}
		l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port)) // the server comes back, and goes
		if err != nil {
			t.Fatal(err)
		}
		l.Close()
		if err := asks(port, how); !errors.Is(err, syscall.EADDRINUSE) && !errors.Is(err, syscall.EADDRNOTAVAIL) {
			t.Errorf("%s, when a server has been there: %v, want that there is none", name, err)
		}
	}
}
