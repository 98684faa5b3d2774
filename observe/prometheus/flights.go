package weirprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
)

// flightGauges describe attempts in flight, by operation. Operation "" is the bound over all operations.
var flightGauges = struct {
	inFlight, held, bound, waiting, base, refused, drains, probes, lost *prometheus.Desc
}{
	inFlight: gauge("weir_in_flight"),
	held:     gauge("weir_in_flight_abandoned"),
	bound:    gauge("weir_in_flight_bound"),
	waiting:  gauge("weir_in_flight_waiting"),
	base:     gauge("weir_in_flight_base_seconds"),
	refused:  gauge("weir_in_flight_refused_total"),
	drains:   gauge("weir_in_flight_drains_total"),
	probes:   gauge("weir_in_flight_probes_total"),
	lost:     gauge("weir_in_flight_lost_total"),
}

func describeFlights(to chan<- *prometheus.Desc) {
	g := &flightGauges
	for _, d := range []*prometheus.Desc{g.inFlight, g.held, g.bound, g.waiting, g.base, g.refused, g.drains, g.probes, g.lost} {
		to <- d
	}
}

// collectFlights sends the attempts that an upstream has in flight.
func collectFlights(to chan<- prometheus.Metric, upstream string, all []weir.FlightView) {
	g := &flightGauges
	for _, f := range all {
		send := func(d *prometheus.Desc, kind prometheus.ValueType, v float64) {
			to <- prometheus.MustNewConstMetric(d, kind, v, upstream, label(f.Operation))
		}
		send(g.inFlight, prometheus.GaugeValue, float64(f.InFlight))
		send(g.held, prometheus.GaugeValue, float64(f.Held))
		send(g.bound, prometheus.GaugeValue, float64(f.Bound))
		send(g.waiting, prometheus.GaugeValue, float64(f.Waiting))
		send(g.base, prometheus.GaugeValue, f.Base.Seconds())
		send(g.refused, prometheus.CounterValue, float64(f.Refused))
		send(g.drains, prometheus.CounterValue, float64(f.Drains))
		send(g.probes, prometheus.CounterValue, float64(f.Probes))
		send(g.lost, prometheus.CounterValue, float64(f.Lost))
	}
}
