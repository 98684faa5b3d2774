package connlimit

import (
	"fmt"
	"testing"
)

// Many connections of one caller, such as tunnels, do not exclude another caller behind the same address.
func TestNamedCallersBehindOneAddressHaveABoundEach(t *testing.T) {
	for _, named := range []bool{false, true} {
		c := New(Bounds{Connections: 20, CallerConnections: 10, Requests: 1000, CallerRequests: 500}, nil)
		c.SetNamed(named)
		serve := func(caller string) (why string) {
			in := c.admit(&peer{from: "10.0.0.1:1"})
			if in == nil {
				return "connection"
			}
			if why := c.Enter(caller, named, false); why != "" {
				_ = in.Close()
				return why
			}
			c.count(in, 1)
			return ""
		}
		for i := range 10 {
			if why := serve("a"); why != "" {
				t.Fatalf("tunnel %d: %s", i, why)
			}
		}
		if why := serve("a"); why == "" {
			t.Error("a caller has more than its bound")
		}
		if why := serve("b"); (why == "") != named {
			t.Errorf("another caller at the same address, named %v: %q", named, why)
		}
		for range 10 { // idle connections are bounded by address and can be replaced
			c.admit(&peer{from: "10.0.0.2:1"})
		}
		if named {
			if why := serve("b"); why != "" {
				t.Errorf("idle connections of others keep a caller out: %s", why)
			}
		}
	}
}

func TestNamedCallerGetsItsPlacesBack(t *testing.T) {
	c := New(Bounds{Connections: 20, CallerConnections: 2, Requests: 1000, CallerRequests: 500}, nil)
	for i := range 100 {
		name := fmt.Sprint(i % 3)
		if why := c.Enter(name, true, false); why != "" {
			t.Fatal(why)
		}
		c.Leave(name, true, false)
	}
	if len(c.held) != 0 || len(c.callers) != 0 {
		t.Errorf("left: %v, %v", c.held, c.callers)
	}
}
