package config

import "github.com/seed1158cd35/weir/internal/connlimit"

// Bounds are what callers may have at once, at each listener; 0 means the default.
type Bounds = connlimit.Bounds

var boundFields = []field[Bounds]{
	one("connections", count[int](1), func(b *Bounds) *int { return &b.Connections }, "8192, or a quarter of the files that the process may open", "Connections. One too many takes the place of that which has served nothing for longest; if all serve something, it is closed."),
	one("caller_connections", count[int](1), func(b *Bounds) *int { return &b.CallerConnections }, "half of `connections`", "Connections from one address."),
	one("streams", count[int](1), func(b *Bounds) *int { return &b.Streams }, "250", "Requests in flight of one connection of HTTP/2, or of gRPC. It is not changed by SIGHUP."),
	one("requests", count[int](1), func(b *Bounds) *int { return &b.Requests }, "8192", "Requests in flight, those that wait among them. One more is answered with 503 and `Retry-After`."),
	one("caller_requests", count[int](1), func(b *Bounds) *int { return &b.CallerRequests }, "half of `requests`", "Those of one caller: by the name of its token or certificate, or by its address."),
}

func readBounds(d *decoder, n *node, f *document) {
	if !object(d, n, boundFields, &f.Bounds) {
		return
	}
	for _, b := range []struct {
		part  string
		whole string
		over  bool
	}{
		{"caller_connections", "connections", f.Bounds.Connections > 0 && f.Bounds.CallerConnections > f.Bounds.Connections},
		{"caller_requests", "requests", f.Bounds.Requests > 0 && f.Bounds.CallerRequests > f.Bounds.Requests},
	} {
		if b.over {
			d.Bad(n.Get(b.part), "", "is more than %s, which all have together", b.whole)
		}
	}
}
