package connlimit

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// A peer is the end of a connection from an address.
type peer struct {
	net.Conn
	from   string
	closed bool
}

func (p *peer) RemoteAddr() net.Addr { return name(p.from) }
func (p *peer) Close() error         { p.closed = true; return nil }

type name string

func (n name) Network() string { return "tcp" }
func (n name) String() string  { return string(n) }

func TestWhoIsIdleGivesWay(t *testing.T) {
	var turned []string
	c := New(Bounds{Connections: 4, CallerConnections: 3}, func(why string) { turned = append(turned, why) })
	var all []*conn
	var peers []*peer
	come := func(from string) *conn {
		p := &peer{from: from + ":1"}
		n := c.admit(p)
		all, peers = append(all, n), append(peers, p)
		return n
	}
	for range 3 {
		come("evil")
	}
	c.count(all[0], 1)
	if come("evil") == nil || !peers[1].closed || peers[0].closed {
		t.Error("an address at its bound keeps an idle connection, and loses one that serves")
	}
	if come("good") == nil || c.total != 4 {
		t.Error("there was room")
	}
	if come("good") == nil || !peers[2].closed || c.total != 4 {
		t.Error("the oldest idle one keeps its place")
	}
	for _, n := range []*conn{all[3], all[4], all[5]} {
		c.count(n, 1)
	}
	if come("third") != nil || !(c.total == 4) {
		t.Error("let in although all others serve")
	}
	if fmt.Sprint(turned) != "[caller_connections connections connections]" {
		t.Errorf("told %v", turned)
	}
	_ = all[0].Close()
	_ = all[0].Close()
	if c.total != 3 || come("third") == nil {
		t.Errorf("%d there after one left", c.total)
	}
}

func TestRequestsAreBounded(t *testing.T) {
	c := New(Bounds{Requests: 3, CallerRequests: 2}, nil)
	c.Enter("a", false, true)
	c.Enter("a", false, true)
	if why := c.Enter("a", false, true); why != CallerRequests {
		t.Errorf("a third of one caller: %q", why)
	}
	if why := c.Enter("b", false, false); why != "" {
		t.Errorf("the first of another: %q", why)
	}
	if why := c.Enter("c", false, false); why != Requests {
		t.Errorf("one too many of all: %q", why)
	}
	if u := c.Use(); u.Requests != 3 || u.CallerRequests != 2 || u.Streams != 2 {
		t.Errorf("%+v", u)
	}
	c.Leave("a", false, true)
	c.Leave("a", false, true)
	if why := c.Enter("a", false, true); why != "" || len(c.callers) != 2 {
		t.Errorf("afterwards: %q, %v", why, c.callers)
	}
}

// In any sequence of connections and requests, the bounds hold, and the counts return to zero.
func TestNothingIsLeft(t *testing.T) {
	seed := rand.Uint64()
	c := New(Bounds{Connections: 20, CallerConnections: 8, Requests: 30, CallerRequests: 9}, nil)
	var wg sync.WaitGroup
	for i := range 8 {
		random := rand.New(rand.NewPCG(seed, uint64(i)))
		wg.Go(func() {
			var mine []*conn
			for range 2000 {
				switch k := random.IntN(4); {
				case k == 0:
					if n := c.admit(&peer{from: fmt.Sprintf("a%d:1", random.IntN(5))}); n != nil {
						mine = append(mine, n)
					}
				case len(mine) == 0:
				case k == 1:
					_ = mine[0].Close()
					mine = mine[1:]
				default:
					n := mine[random.IntN(len(mine))]
					c.count(n, 1)
					if c.Enter("x", false, true) == "" {
						c.Leave("x", false, true)
					}
					c.count(n, -1)
				}
				if u := c.Use(); u.Connections > 20 || u.CallerConnections > 8 || u.Requests > 30 {
					t.Errorf("seed %d: %+v", seed, u)
					return
				}
			}
			for _, n := range mine {
				_ = n.Close()
			}
		})
	}
	wg.Wait()
	if c.total != 0 || len(c.conns) != 0 || c.idle.Len() != 0 || len(c.callers) != 0 || c.requests != 0 {
		t.Errorf("seed %d: left %+v", seed, c)
	}
}

func TestBoundsByDefault(t *testing.T) {
	if b := (Bounds{}).WithDefaults(1 << 20); b != (Bounds{8192, 4096, 250, 8192, 4096}) {
		t.Errorf("with many files: %+v", b)
	}
	if b := (Bounds{Requests: 10}).WithDefaults(1024); b != (Bounds{256, 128, 250, 10, 5}) {
		t.Errorf("with few files: %+v", b)
	}
}
