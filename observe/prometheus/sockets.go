package weirprom

import "github.com/prometheus/client_golang/prometheus"

// SocketCounts counts the WebSockets of an upstream.
type SocketCounts struct {
	Upstream string
	Open     int64                                                        // connections
	Most     int64                                                        // the maximum of Open; 0 means no bound
	Messages func(yield func(route, direction, decision string, n int64)) // yields each row once
	Closed   func(yield func(code string, n int64))
}

// Sockets exports the counts of WebSockets. Each scrape calls all.
func Sockets(reg prometheus.Registerer, all func(yield func(SocketCounts) bool)) {
	reg.MustRegister(sockets(all))
}

type sockets func(yield func(SocketCounts) bool)

var (
	descSockets        = gauge("weir_ws_connections")
	descSocketsMost    = gauge("weir_ws_connections_max")
	descSocketMessages = gauge("weir_ws_messages_total")
	descSocketsClosed  = gauge("weir_ws_closed_total")
)

func (s sockets) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descSockets, descSocketsMost, descSocketMessages, descSocketsClosed} {
		to <- d
	}
}

func (s sockets) Collect(to chan<- prometheus.Metric) {
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
	}
	for c := range s {
		send(descSockets, prometheus.GaugeValue, c.Open, c.Upstream)
		if c.Most > 0 {
			send(descSocketsMost, prometheus.GaugeValue, c.Most, c.Upstream)
		}
		c.Messages(func(route, direction, decision string, n int64) {
			send(descSocketMessages, prometheus.CounterValue, n, c.Upstream, route, direction, decision)
		})
		c.Closed(func(code string, n int64) { send(descSocketsClosed, prometheus.CounterValue, n, c.Upstream, code) })
	}
}
