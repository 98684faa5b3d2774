package weirprom

import (
	"crypto/x509"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/observe/metric"
)

// Process are the metrics of a weir serve process: its version, and the state of its configuration. Create one with NewProcess.
// It is safe for concurrent use.
type Process struct {
	reloaded, since prometheus.Gauge
	troubles        func() map[string]int
	certificate     func() *x509.Certificate
}

// NewProcess creates the metrics and registers them. The configuration counts as loaded now. The function troubles returns, by
// upstream, the number of problems that prevent weir from doing what its file specifies. The key "" is for problems of all
// upstreams. The function certificate returns the certificate of the listener, nil for none.
func NewProcess(reg prometheus.Registerer, version string, troubles func() map[string]int, certificate func() *x509.Certificate) *Process {
	p := &Process{
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_config_reload_successful", Help: metric.Help("weir_config_reload_successful")}),
		since:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_config_reload_success_timestamp_seconds", Help: metric.Help("weir_config_reload_success_timestamp_seconds")}),
		troubles: troubles, certificate: certificate,
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: metric.Help("weir_build_info"), ConstLabels: prometheus.Labels{"version": label(version), "go": runtime.Version()},
	})
	build.Set(1)
	p.Reloaded(nil)
	reg.MustRegister(build, p.reloaded, p.since, stateOf{p})
	return p
}

// Reloaded records that the file was read again. err is the reason if the configuration did not change.
func (p *Process) Reloaded(err error) {
	if err != nil {
		p.reloaded.Set(0)
		return
	}
	p.reloaded.Set(1)
	p.since.Set(float64(time.Now().Unix()))
}

// stateOf collects the values that are read during a scrape.
type stateOf struct{ *Process }

var (
	descTroubles = gauge("weir_problems")
	descBegins   = gauge("weir_certificate_not_before_timestamp_seconds")
	descEnds     = gauge("weir_certificate_not_after_timestamp_seconds")
)

func (s stateOf) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descTroubles, descBegins, descEnds} {
		to <- d
	}
}

func (s stateOf) Collect(to chan<- prometheus.Metric) {
	for upstream, n := range s.troubles() {
		to <- prometheus.MustNewConstMetric(descTroubles, prometheus.GaugeValue, float64(n), label(upstream))
	}
	if c := s.certificate(); c != nil {
		to <- prometheus.MustNewConstMetric(descBegins, prometheus.GaugeValue, float64(c.NotBefore.Unix()))
		to <- prometheus.MustNewConstMetric(descEnds, prometheus.GaugeValue, float64(c.NotAfter.Unix()))
	}
}
