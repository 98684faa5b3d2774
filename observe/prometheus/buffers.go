package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/observe/metric"
)

// Buffers registers gauges for the memory that the process uses to buffer data for callers, and for its bounds.
func Buffers(reg prometheus.Registerer) {
	for kind, b := range map[string]*buffers.Budget{"bodies": buffers.Bodies, "tables": buffers.Tables} {
		labels := prometheus.Labels{"kind": kind}
		gauge := func(name string, value func() float64) {
			reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: metric.Help(name), ConstLabels: labels}, value))
		}
		gauge("weir_buffer_bytes", func() float64 { used, _, _ := b.Use(); return float64(used) })
		gauge("weir_buffer_max_bytes", func() float64 { return float64(b.Total()) })
		reg.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "weir_buffer_refused_total", Help: metric.Help("weir_buffer_refused_total"), ConstLabels: labels},
			func() float64 { _, _, turned := b.Use(); return float64(turned) }))
	}
}
