package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

var socketFields = []field[websocket.Config]{
	{"route_by", "the path of a field", "every message is `default`", "Field of a JSON message with its route: `action`, `data.kind`, or `$request.body.action` as in API Gateway.", readRouteBy},
	one("message_routes", listOf(operationName), func(c *websocket.Config) *[]string { return &c.Routes }, "routes in `limits` and `operations`", ""),
	one("max_message", size(1<<10, 64<<20), func(c *websocket.Config) *int64 { return &c.MaxMessage }, "128KiB", "Largest message. A larger one closes the connection with 1009."),
	one("message_wait", orOff(duration, 0), func(c *websocket.Config) *time.Duration { return &c.Wait }, "off", ""),
	one("write_timeout", duration, func(c *websocket.Config) *time.Duration { return &c.Write }, "10s", ""),
	one("ping", duration, func(c *websocket.Config) *time.Duration { return &c.Ping }, "30s", ""),
	one("idle", orOff(duration, 0), func(c *websocket.Config) *time.Duration { return &c.Idle }, "off", ""),
	one("lifetime", orOff(duration, 0), func(c *websocket.Config) *time.Duration { return &c.Lifetime }, "off", ""),
	one("refusals", orOff(count[int](1), 0), func(c *websocket.Config) *int { return &c.Refusals }, "off", ""),
	one("connections", orOff(count[int](1), 0), func(c *websocket.Config) *int { return &c.Most }, "off", "Open connections of this process."),
	{"connections_by", "scopes, each with a number", "none", "Open connections with one value of a scope: `{user: 5}`.", readSocketsBy},
}

func readSockets(d *decoder, n *node, u *site) {
	u.Sockets = new(websocket.Config)
	object(d, n, socketFields, u.Sockets)
}

func readRouteBy(d *decoder, n *node, c *websocket.Config) {
	s, ok := d.Str(n, "the path of a field")
	if !ok {
		return
	}
	path := strings.Split(strings.TrimPrefix(s, "$request.body."), ".")
	if slices.Contains(path, "") || strings.ContainsAny(s, "[]*\"' ") || strings.HasPrefix(path[0], "$") {
		d.Bad(n, "write action, or data.action", "%s: is not the path of a field", doc.Quote(s))
		return
	}
	c.Field = path
}

func readSocketsBy(d *decoder, n *node, c *websocket.Config) {
	for _, e := range d.named(n) {
		if most, ok := count[int](1).read(d, e.Value); ok {
			put(&c.MostBy, e.Name, most)
		}
	}
}

// settleSockets sets the defaults of an upstream with WebSocket routes, and reports settings that they do not
// support.
func (d *decoder) settleSockets(n *node, u *site) {
	routed := false
	for i, r := range u.Routes {
		if !r.WebSocket {
			continue
		}
		routed = true
		at := n
		if i < len(u.routes) {
			at = u.routes[i].Get("websocket")
		}
		d.checkSocketRoute(at, u, i)
	}
	at := n.Get("websocket")
	switch {
	case !routed && at != nil:
		d.Bad(at, "write routes: [{path: /"+u.Name+"/, websocket: true}]", "no route of the upstream has websocket: true")
		return
	case !routed:
		return
	case u.Sockets == nil:
		u.Sockets = new(websocket.Config)
	}
	d.checkSocketRoutes(at, u)
	u.Policy.Undeclared = true // connect, and the routes of messages
	for i := range u.Policy.Limits {
		settleSocketLimit(&u.Policy.Limits[i])
	}
}

// checkSocketRoute reports settings that do not fit a WebSocket route.
func (d *decoder) checkSocketRoute(at *node, u *site, i int) {
	what := ""
	switch r := u.Routes[i]; {
	case u.llm != nil:
		what = "llm: it reads calls and not messages; use a separate upstream for the connections"
	case u.aws != nil:
		what = "aws: messages cannot be signed"
	case u.GRPC, u.HTTP2:
		what = "HTTP/2: WebSockets need HTTP/1.1"
	case r.Deliver != 0 || r.Keep.On || u.Own != nil:
		what = "deliver and idempotency: a connection can be neither delivered later nor stored"
	default:
		return
	}
	d.Bad(at, "remove one of them", "websocket cannot be combined with %s", what)
}

// checkSocketRoutes gives connections the names of routes that limits count, and checks the routes in the file.
func (d *decoder) checkSocketRoutes(at *node, u *site) {
	c, said := u.Sockets, len(u.Sockets.Routes)
	for i, name := range c.Routes {
		if c.Routes[i] = socketOperation(name); c.Routes[i] == websocket.Connect {
			d.Bad(at.Get("message_routes"), "give the route another name", "%s is the route of opening a connection, not of a message", doc.Quote(name))
		}
	}
	for _, o := range u.Policy.Operations {
		c.Routes = append(c.Routes, o.Name)
	}
	for i := range u.Policy.Limits {
		for _, name := range u.Policy.Limits[i].Operations {
			c.Routes = append(c.Routes, socketOperation(name))
		}
	}
	slices.Sort(c.Routes)
	c.Routes = slices.DeleteFunc(slices.Compact(c.Routes), func(name string) bool {
		return name == websocket.Connect || name == websocket.Default
	})
	if len(c.Field) == 0 && said > 0 {
		d.Bad(at.Get("message_routes"), "write route_by: action", "route_by is missing")
	}
	known := append(slices.Collect(maps.Keys(u.Keys)), websocket.Connection)
	for scope := range c.MostBy {
		d.knownScope(at.Get("connections_by").Get(scope), scope, known)
	}
}

// socketOperation returns weir's name of an operation, for weir's name or API Gateway's.
func socketOperation(name string) string {
	switch name {
	case "$connect":
		return websocket.Connect
	case "$default":
		return weir.DefaultOperation
	}
	return name
}

// settleSocketLimit translates the operations of a limit to weir's names. A limit by connection counts only calls of
// connections, in this process.
func settleSocketLimit(l *limit.Limit) {
	for i, name := range l.Operations {
		l.Operations[i] = socketOperation(name)
	}
	if slices.Contains(scopes.Names(l.Scope), websocket.Connection) {
		l.Local = true
		if l.If.Scope == "" {
			l.If = limit.Match{Scope: websocket.Connection, NotIn: []string{""}}
		}
	}
}

// hasSockets reports whether an upstream has WebSocket routes.
func (u *site) hasSockets() bool { return u.Sockets != nil }
