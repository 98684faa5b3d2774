package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/observe/metric"
)

// ListenerUse exports the connections, streams and requests in use at each listener, and their bounds. A value per caller is the
// maximum of all callers.
func ListenerUse(reg prometheus.Registerer, all map[string]*connlimit.Limiter) {
	parts := map[string]func(connlimit.Bounds) int{
		connlimit.Connections:       func(b connlimit.Bounds) int { return b.Connections },
		connlimit.CallerConnections: func(b connlimit.Bounds) int { return b.CallerConnections },
		connlimit.Streams:           func(b connlimit.Bounds) int { return b.Streams },
		connlimit.Requests:          func(b connlimit.Bounds) int { return b.Requests },
		connlimit.CallerRequests:    func(b connlimit.Bounds) int { return b.CallerRequests },
	}
	for listener, c := range all {
		for resource, part := range parts {
			gauge := func(name string, b func() connlimit.Bounds) {
				reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: metric.Help(name), ConstLabels: prometheus.Labels{"listener": listener, "resource": resource}},
					func() float64 { return float64(part(b())) }))
			}
			gauge("weir_listener_in_use", c.Use)
			gauge("weir_listener_max", c.Bounds)
		}
	}
}
