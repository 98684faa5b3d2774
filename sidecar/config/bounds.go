package config

import "github.com/seed1158cd35/weir/internal/connlimit"

// Bounds limit the connections and requests of callers at each listener. 0 means the default.
type Bounds = connlimit.Bounds

var boundFields = []field[Bounds]{
	one("connections", count[int](1), func(b *Bounds) *int { return &b.Connections }, "8192, or a quarter of the open-file limit", "Open connections. At the maximum, weir closes the connection that has been idle longest, or the new one if none is idle."),
	one("caller_connections", count[int](1), func(b *Bounds) *int { return &b.CallerConnections }, "half of `connections`", ""),
	one("streams", count[int](1), func(b *Bounds) *int { return &b.Streams }, "250", ""),
	one("requests", count[int](1), func(b *Bounds) *int { return &b.Requests }, "8192", "Requests in flight, including waiting ones. Further requests get 503 with `Retry-After`."),
	one("caller_requests", count[int](1), func(b *Bounds) *int { return &b.CallerRequests }, "half of `requests`", "Requests of one caller, by token, certificate or address."),
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
			d.Bad(n.Get(b.part), "", "is more than %s, the total", b.whole)
		}
	}
}
