package servers

import (
	"net"
	"strconv"
	"testing"
)

// A reserved port is not given to other callers, also if they request it. A server can listen there, end, and return.
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
