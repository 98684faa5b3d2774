package weirprom

import "github.com/prometheus/client_golang/prometheus"

// Doors are the metrics of listeners: what was turned away before anything was asked of an
// upstream. Make one with NewDoors; it is safe for concurrent use.
type Doors struct{ refused *prometheus.CounterVec }

// NewDoors makes metrics and registers them.
func NewDoors(reg prometheus.Registerer) *Doors {
	d := &Doors{refused: counter("weir_turned_away_total", "Requests that a listener did not let in, by why.", "listener", "why")}
	reg.MustRegister(d.refused)
	return d
}

// Begin has reasons shown at 0: an alert would miss the first one.
func (d *Doors) Begin(listener string, whys ...string) {
	for _, why := range whys {
		d.refused.WithLabelValues(listener, why)
	}
}

// Refused counts a request that was turned away. why is a word of weir's own.
func (d *Doors) Refused(listener, why string) { d.refused.WithLabelValues(listener, why).Inc() }
