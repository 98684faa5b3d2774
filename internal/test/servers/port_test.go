package servers

import (
	"net"
	"strconv"
	"testing"
)

// A port that was chosen and is not in use yet is not chosen again, by another program neither.
func TestAChosenPortIsClaimed(t *testing.T) {
	port, claimed := freePort(t)
	defer claimed.Close()
	if l, err := net.ListenPacket("udp", "127.0.0.1:"+strconv.Itoa(port)); err == nil {
		l.Close()
		t.Errorf("port %d can be claimed twice", port)
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(port))
	if err != nil {
		t.Fatalf("a server cannot use the port that was claimed for it: %v", err)
	}
	l.Close()
}
