package weirprom

import "github.com/prometheus/client_golang/prometheus"

// Stories shows how many calls were written to the store for weir why, and how many could not be, as counts says at each scrape.
func Stories(reg prometheus.Registerer, counts func() (written, dropped int64)) {
	reg.MustRegister(storied(counts))
}

type storied func() (written, dropped int64)

var descStories = gauge("weir_stories_total", "Records for weir why in a Redis or DynamoDB store: written, or dropped because the store did not accept them within a minute or too many waited.", "result")

func (s storied) Describe(to chan<- *prometheus.Desc) { to <- descStories }

func (s storied) Collect(to chan<- prometheus.Metric) {
	written, dropped := s()
	to <- prometheus.MustNewConstMetric(descStories, prometheus.CounterValue, float64(written), "written")
	to <- prometheus.MustNewConstMetric(descStories, prometheus.CounterValue, float64(dropped), "dropped")
}
