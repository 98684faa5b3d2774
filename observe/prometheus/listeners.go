package weirprom

import "github.com/prometheus/client_golang/prometheus"

// Listeners are the metrics of listeners: what was turned away before anything was asked of an
// upstream. Make one with NewListeners; it is safe for concurrent use.
type Listeners struct{ refused *prometheus.CounterVec }

// NewListeners makes metrics and registers them.
func NewListeners(reg prometheus.Registerer) *Listeners {
	l := &Listeners{refused: counter("weir_listener_refused_total")}
	reg.MustRegister(l.refused)
	return l
}

// Begin has reasons shown at 0: an alert would miss the first one.
func (l *Listeners) Begin(listener string, whys ...string) {
	for _, why := range whys {
		l.refused.WithLabelValues(listener, why)
	}
}

// Refused counts a request that was turned away. why is a word of weir's own.
func (l *Listeners) Refused(listener, why string) { l.refused.WithLabelValues(listener, why).Inc() }
