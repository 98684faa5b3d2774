package weirprom

import "github.com/prometheus/client_golang/prometheus"

// Stories exports how many calls were written to the store for weir why, and how many could not be written. Each scrape calls
// counts.
func Stories(reg prometheus.Registerer, counts func() (written, dropped int64)) {
	reg.MustRegister(storied(counts))
}

type storied func() (written, dropped int64)

var descStories = gauge("weir_why_records_total")

func (s storied) Describe(to chan<- *prometheus.Desc) { to <- descStories }

func (s storied) Collect(to chan<- prometheus.Metric) {
	written, dropped := s()
	to <- prometheus.MustNewConstMetric(descStories, prometheus.CounterValue, float64(written), "written")
	to <- prometheus.MustNewConstMetric(descStories, prometheus.CounterValue, float64(dropped), "dropped")
}
