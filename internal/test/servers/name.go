package servers

import (
	"io"
	"net"
	"sync"
	"sync/atomic"
)

// A Name directs new connections to a server, like a DNS name. Existing connections stay.
type Name struct {
	l    net.Listener
	to   atomic.Pointer[Server]
	made atomic.Int64
	wg   sync.WaitGroup
}

// Named returns a name for a server.
func Named(t TB, s *Server) *Name {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("a name for %s: %v", s.addr, err)
	}
	n := &Name{l: l}
	n.Lead(s)
	n.wg.Go(n.serve)
	t.Cleanup(func() { l.Close(); n.wg.Wait() })
	return n
}

// Lead changes the server of the name.
func (n *Name) Lead(to *Server) { n.to.Store(to) }

// Made returns the number of connections through the name.
func (n *Name) Made() int64 { return n.made.Load() }

// URL returns the URL for a client's configuration.
func (n *Name) URL() string { return "redis://" + n.l.Addr().String() }

func (n *Name) serve() {
	for {
		c, err := n.l.Accept()
		if err != nil {
			return
		}
		n.made.Add(1)
		n.wg.Go(func() { n.carry(c, n.to.Load().addr) })
	}
}

// carry ends when either connection ends.
func (n *Name) carry(c net.Conn, addr string) {
	defer c.Close()
	s, err := net.Dial("tcp", addr)
	if err != nil {
		return
	}
	n.wg.Go(func() {
		io.Copy(s, c)
		s.Close()
	})
	io.Copy(c, s)
}
