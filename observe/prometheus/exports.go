package weirprom

import "github.com/prometheus/client_golang/prometheus"

// ExportCounts counts export requests with metrics by result. Failed counts attempts. Waiting is the number of bytes that wait.
type ExportCounts struct{ Exported, Failed, Denied, Dropped, Waiting int64 }

// Exports registers the results of metric exports. Each scrape calls counts.
func Exports(reg prometheus.Registerer, counts func() ExportCounts) {
	reg.MustRegister(exported(counts))
}

type exported func() ExportCounts

var (
	descExports        = gauge("weir_metric_exports_total")
	descExportsWaiting = gauge("weir_metric_exports_waiting_bytes")
)

func (e exported) Describe(to chan<- *prometheus.Desc) {
	to <- descExports
	to <- descExportsWaiting
}

func (e exported) Collect(to chan<- prometheus.Metric) {
	c := e()
	for result, n := range map[string]int64{"exported": c.Exported, "failed": c.Failed, "denied": c.Denied, "dropped": c.Dropped} {
		to <- prometheus.MustNewConstMetric(descExports, prometheus.CounterValue, float64(n), result)
	}
	to <- prometheus.MustNewConstMetric(descExportsWaiting, prometheus.GaugeValue, float64(c.Waiting))
}
