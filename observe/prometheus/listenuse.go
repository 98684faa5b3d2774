package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/connlimit"
)

// ListenerUse shows what callers have at once at each listener, and what they may have. What is one
// caller's is the most that any of them has.
func ListenerUse(reg prometheus.Registerer, all map[string]*connlimit.Limiter) {
	parts := map[string]func(connlimit.Bounds) int{
		connlimit.Connections:       func(b connlimit.Bounds) int { return b.Connections },
		connlimit.CallerConnections: func(b connlimit.Bounds) int { return b.CallerConnections },
		connlimit.Streams:           func(b connlimit.Bounds) int { return b.Streams },
		connlimit.Requests:          func(b connlimit.Bounds) int { return b.Requests },
		connlimit.CallerRequests:    func(b connlimit.Bounds) int { return b.CallerRequests },
	}
	for listener, c := range all {
		for of, part := range parts {
			gauge := func(name, help string, b func() connlimit.Bounds) {
				reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: prometheus.Labels{"listener": listener, "of": of}},
					func() float64 { return float64(part(b())) }))
			}
			gauge("weir_listener_in_use", "Current connections, requests in flight and HTTP/2 streams of a listener.", c.Use)
			gauge("weir_listener_max", "Bounds of a listener's connections, requests and streams (bounds).", c.Bounds)
		}
	}
}
