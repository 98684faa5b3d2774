package servers

import (
	"net"
	"strconv"
	"testing"
)

// A port is not chosen again, neither by the next who chooses one nor by one who wants it; a server listens there, goes, and
// comes back.
func TestAPortIsClaimed(t *testing.T) {
	port := portOfNode(t)
	for _, taken := range []int{port, port + 10_000} {
		if _, release, err := claim(taken); err == nil {
			release()
			t.Errorf("port %d can be claimed twice", taken)
		}
		for range 3 {
			l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(taken))
			if err != nil {
				t.Fatalf("a server cannot use the port that was claimed for it: %v", err)
			}
			c, err := net.Dial("tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if other, err := net.Listen("tcp", l.Addr().String()); err == nil {
				other.Close()
				t.Errorf("two listen at port %d", taken)
			}
			c.Close()
			l.Close()
			if c, err := net.Dial("tcp", l.Addr().String()); err == nil {
				c.Close()
				t.Errorf("port %d answers, and nobody listens", taken)
			}
		}
	}
}
