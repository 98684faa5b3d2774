package weirprom

import "github.com/prometheus/client_golang/prometheus"

// Listeners counts requests that a listener refused before they reached an upstream. Create one with NewListeners. It is safe for
// concurrent use.
type Listeners struct{ refused *prometheus.CounterVec }

// NewListeners creates the metrics and registers them.
func NewListeners(reg prometheus.Registerer) *Listeners {
	l := &Listeners{refused: counter("weir_listener_refused_total")}
	reg.MustRegister(l.refused)
	return l
}

// Begin creates the series of the reasons at 0. Otherwise an alert would miss the first refusal.
func (l *Listeners) Begin(listener string, whys ...string) {
	for _, why := range whys {
		l.refused.WithLabelValues(listener, why)
	}
}

// Refused counts a refused request. why is a fixed value.
func (l *Listeners) Refused(listener, why string) { l.refused.WithLabelValues(listener, why).Inc() }
