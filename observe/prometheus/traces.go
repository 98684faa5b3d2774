package weirprom

import "github.com/prometheus/client_golang/prometheus"

// TraceCounts counts traces and spans: kept traces, dropped traces by reason (with every reason present), spans, and the bytes
// that wait.
type TraceCounts struct {
	Kept, Dropped    map[string]int64
	Exported, Denied int64 // spans
	Waiting          int64
}

// Traces exports the counts of traces. Each scrape calls counts.
func Traces(reg prometheus.Registerer, counts func() TraceCounts) { reg.MustRegister(traced(counts)) }

type traced func() TraceCounts

var (
	descTraces        = gauge("weir_traces_total")
	descTracesDropped = gauge("weir_traces_dropped_total")
	descTraceSpans    = gauge("weir_trace_spans_total")
	descTracesWaiting = gauge("weir_traces_waiting_bytes")
)

func (t traced) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTraces, descTracesDropped, descTraceSpans, descTracesWaiting} {
		to <- d
	}
}

func (t traced) Collect(to chan<- prometheus.Metric) {
	c := t()
	send := func(d *prometheus.Desc, kind prometheus.ValueType, v int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, kind, float64(v), labels...)
	}
	for why, n := range c.Kept {
		send(descTraces, prometheus.CounterValue, n, why)
	}
	for why, n := range c.Dropped {
		send(descTracesDropped, prometheus.CounterValue, n, why)
	}
	send(descTraceSpans, prometheus.CounterValue, c.Exported, "exported")
	send(descTraceSpans, prometheus.CounterValue, c.Denied, "denied")
	send(descTracesWaiting, prometheus.GaugeValue, c.Waiting)
}
