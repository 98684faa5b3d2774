package proxy

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// own holds the addresses of the program's own listeners. An upstream at one of them would make weir call itself, or
// would expose the operators' endpoints.
type own struct {
	at atomic.Pointer[[]netip.AddrPort]
}

// Own sets the addresses of the program's own listeners.
func (p *Proxy) Own(addresses ...net.Addr) {
	var all []netip.AddrPort
	for _, a := range addresses {
		if tcp, ok := a.(*net.TCPAddr); ok {
			at := tcp.AddrPort()
			all = append(all, netip.AddrPortFrom(at.Addr().Unmap(), at.Port()))
		}
	}
	p.own.at.Store(&all)
}

type dial = func(ctx context.Context, network, address string) (net.Conn, error)

// elsewhere returns a dialer that refuses connections to the program's own listeners.
func (o *own) elsewhere(next dial) dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := next(ctx, network, address)
		if err == nil && o.reached(c) {
			_ = c.Close()
			return nil, &refuse.Facts{Status: http.StatusLoopDetected, Code: refuse.ValidationError, Final: true,
				Message: "weir itself listens on the upstream's address: change the upstream's url"}
		}
		return c, err
	}
}

// reached reports whether a connection leads to one of our listeners. A listener on all addresses is reached through
// each address of this machine. Both ends of such a connection have the same address.
func (o *own) reached(c net.Conn) bool {
	all := o.at.Load()
	there, ok := c.RemoteAddr().(*net.TCPAddr)
	here, ok2 := c.LocalAddr().(*net.TCPAddr)
	if all == nil || !ok || !ok2 {
		return false
	}
	ip := there.AddrPort().Addr().Unmap()
	for _, a := range *all {
		if a.Port() != uint16(there.Port) {
			continue
		}
		if a.Addr() == ip || a.Addr().IsUnspecified() && (ip.IsLoopback() || ip == here.AddrPort().Addr().Unmap()) {
			return true
		}
	}
	return false
}
