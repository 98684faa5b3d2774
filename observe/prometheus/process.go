package weirprom

import (
	"crypto/x509"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Process are the metrics of a weir serve as such: what it is, and how it came to its configuration.
// Make one with NewProcess; it is safe for concurrent use.
type Process struct {
	reloaded, since prometheus.Gauge
	troubles        func() map[string]int
	certificate     func() *x509.Certificate
}

// NewProcess makes the metrics and registers them; the configuration counts as read now. troubles says how many
// things keep weir from doing what its file says, by upstream, "" for what concerns all; certificate is that of its
// listener, nil for none.
func NewProcess(reg prometheus.Registerer, version string, troubles func() map[string]int, certificate func() *x509.Certificate) *Process {
	p := &Process{
		reloaded: prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_config_reload_successful", Help: "1 if the last reload succeeded, 0 if the file had mistakes and nothing changed."}),
		since:    prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_config_reload_success_timestamp_seconds", Help: "Time of the last successful reload."}),
		troubles: troubles, certificate: certificate,
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_build_info", Help: "Version of weir, in the labels.", ConstLabels: prometheus.Labels{"version": label(version), "go": runtime.Version()},
	})
	build.Set(1)
	p.Reloaded(nil)
	reg.MustRegister(build, p.reloaded, p.since, stateOf{p})
	return p
}

// Reloaded says that the file was read again, with an error if it changed nothing.
func (p *Process) Reloaded(err error) {
	if err != nil {
		p.reloaded.Set(0)
		return
	}
	p.reloaded.Set(1)
	p.since.Set(float64(time.Now().Unix()))
}

// stateOf is what is looked at in a scrape.
type stateOf struct{ *Process }

var (
	descTroubles = gauge("weir_troubles", "Problems that prevent weir from working as configured, such as missing credentials or an unreachable store.", "upstream")
	descBegins   = gauge("weir_certificate_not_before_timestamp_seconds", "Start of the validity of the listener's certificate (tls).")
	descEnds     = gauge("weir_certificate_not_after_timestamp_seconds", "End of the validity of the listener's certificate (tls).")
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
