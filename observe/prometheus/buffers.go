package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// Buffers shows what the process holds for its callers, and what it may hold.
func Buffers(reg prometheus.Registerer) {
	for of, b := range map[string]*buffers.Budget{"bodies": buffers.Bodies, "tables": buffers.Tables} {
		labels := prometheus.Labels{"of": of}
		gauge := func(name, help string, value func() float64) {
			reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value))
		}
		gauge("weir_buffer_bytes", "Memory used for callers' data: bodies (including caches and answers) and parsing tables.", func() float64 { used, _, _ := b.Use(); return float64(used) })
		gauge("weir_buffer_max_bytes", "Bound of the memory for callers' data.", func() float64 { return float64(b.Total()) })
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "weir_buffer_refused_total", Help: "Bodies that did not fit into the memory for callers' data in time.", ConstLabels: labels},
			func() float64 { _, _, turned := b.Use(); return float64(turned) }))
	}
}
