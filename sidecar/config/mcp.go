package config

import (
	"slices"

	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/mcpdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// settleMCP configures an MCP server, and reports settings that it does not support.
func (d *decoder) settleMCP(n *node, u *site) {
	if !u.mcp {
		return
	}
	at := n.Get("mcp")
	if u.aws != nil || u.llm != nil || u.GRPC {
		d.Bad(at, "remove one of them", "mcp cannot be combined with aws, llm or grpc")
		return
	}
	if u.Closed {
		d.Bad(n.Get("undeclared"), "remove it", "operations of an MCP server match tools by name, and others are not refused")
	}
	for i, r := range u.Routes {
		if (r.Deliver != proxy.DeliverNever || r.Keep.On) && i < len(u.routes) {
			d.Bad(u.routes[i], "remove deliver and idempotency", "MCP requests cannot be delivered later, and their responses cannot be stored")
		}
	}
	for _, o := range u.owned {
		d.Bad(o.at, "remove deliver and idempotency", "MCP requests cannot be delivered later, and their responses cannot be stored")
	}
	for i := range u.Policy.Limits {
		if l := &u.Policy.Limits[i]; slices.Contains(scopes.Names(l.Scope), mcpdialect.Tool) && l.If.Scope == "" {
			l.If = limit.Match{Scope: mcpdialect.Tool, NotIn: []string{""}} // other methods call no tool
		}
	}
	u.Dialect = mcpdialect.New()
}
