package config

import (
	"github.com/seed1158cd35/weir/sidecar/grpcdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// h2c is the scheme of HTTP/2 without encryption and without negotiation.
const h2c = "h2c"

// settleGRPC configures a gRPC upstream, and reports settings that gRPC does not support.
func (d *decoder) settleGRPC(n *node, u *site) {
	if !u.GRPC {
		return
	}
	at := n.Get("grpc")
	if u.URL != nil && u.URL.Scheme == "http" && !u.HTTP2 {
		d.Bad(n.Get("url"), "write it as h2c://"+u.URL.Host, "gRPC needs HTTP/2, and http:// is HTTP/1.1")
	}
	if u.aws != nil || u.llm != nil {
		d.Bad(at, "remove one of them", "grpc cannot be combined with aws or llm")
	}
	for i, r := range u.Routes {
		if r.Deliver == proxy.DeliverNever && !r.Keep.On {
			continue
		}
		if i < len(u.routes) {
			d.Bad(u.routes[i], "remove deliver and idempotency", "gRPC calls cannot be delivered later, and their responses cannot be stored")
		}
	}
	for _, o := range u.owned {
		d.Bad(o.at, "remove deliver and idempotency", "gRPC calls cannot be delivered later, and their responses cannot be stored")
	}
	u.HTTP2, u.Dialect = true, grpcdialect.Dialect{}
}
