package weirprom

import (
	"errors"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/metric"
)

// Fleet are the metrics of limits that are shared through a store. Create one with NewFleet, pass its Events to fleet.New, and
// call Watch with the result. It is safe for concurrent use.
type Fleet struct {
	calls, served, units, leased, returned, repeats, conditions, throttled, retried *prometheus.CounterVec

	took, requests *prometheus.HistogramVec
	reached, clock prometheus.Gauge
	cold           *prometheus.GaugeVec
	reg            prometheus.Registerer

	activated, outlasted, resumed, lone prometheus.Counter
}

// NewFleet creates the metrics and registers them. It panics if they are already registered with reg, like MustRegister.
func NewFleet(reg prometheus.Registerer) *Fleet {
	one := func(name string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: metric.Help(name)})
	}
	f := &Fleet{
		calls:      counter("weir_store_calls_total"),
		served:     counter("weir_store_served_calls_total"),
		units:      counter("weir_store_units_acquired_total"),
		leased:     counter("weir_store_units_leased_total"),
		returned:   counter("weir_store_units_returned_total"),
		repeats:    counter("weir_store_repeats_total"),
		conditions: counter("weir_store_failed_conditions_total"),
		throttled:  counter("weir_store_throttled_total"),
		retried:    counter("weir_store_retries_total"),
		requests:   numbers("weir_store_call_requests"),
		took:       histogram("weir_store_call_duration_seconds"),
		activated:  one("weir_fallback_activations_total"),
		outlasted:  one("weir_fallback_outlasted_total"),
		resumed:    one("weir_fallback_resumptions_total"),
		lone:       one("weir_fallback_units_total"),
		reg:        reg,
	}
	f.reached = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_store_reached", Help: metric.Help("weir_store_reached")})
	f.cold = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_store_cold", Help: metric.Help("weir_store_cold"),
	}, []string{"upstream"})
	f.clock = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_store_clock_uncertainty_seconds", Help: metric.Help("weir_store_clock_uncertainty_seconds"),
	})
	reg.MustRegister(f.reached, f.cold, f.clock, f.calls, f.served, f.units, f.leased, f.returned, f.repeats, f.conditions, f.throttled, f.retried, f.requests, f.took, f.activated, f.outlasted, f.resumed, f.lone)
	return f
}

// Events returns the events to pass to fleet.New, so that calls to the store are counted.
func (m *Fleet) Events() fleet.Events {
	return fleet.Events{Called: m.called, Fallback: m.fallback}
}

// Results of a call to the store.
const (
	granted = "granted" // all that was requested
	short   = "short"   // less than requested, or nothing
	failing = "error"
)

func (m *Fleet) called(e fleet.StoreCall) {
	up := label(e.Group)
	result := granted
	switch {
	case e.Err != nil && !errors.Is(e.Err, fleet.ErrWindow):
		result = failing
	case e.Granted < int64(e.Calls):
		result = short
	}
	m.calls.WithLabelValues(up, result).Inc()
	if result != failing { // without a response the duration would measure weir's timeout, or a missing connection
		m.took.WithLabelValues(up).Observe(e.Took.Seconds())
	}
	m.served.WithLabelValues(up).Add(float64(e.Granted))
	m.returned.WithLabelValues(up).Add(float64(e.Back))
	if e.Again {
		m.repeats.WithLabelValues(up).Inc()
	}
	for _, l := range e.Limits {
		m.units.WithLabelValues(up, label(l.Limit.Name)).Add(float64(l.Units + l.Leased))
		m.leased.WithLabelValues(up, label(l.Limit.Name)).Add(float64(l.Leased))
	}
}

func (m *Fleet) fallback(e fleet.FallbackEvent) {
	switch {
	case e.Away && e.For > 0:
		m.outlasted.Inc()
		return
	case e.Away:
		m.activated.Inc()
		return
	}
	m.resumed.Inc()
	m.lone.Add(float64(e.Spent))
}

// Requests counts the requests of one store call, for stores that may need several.
type Requests struct {
	Sent      int // including the first
	Failed    int // conditional writes that conflicted with another write
	Throttled int // refused by the store because of their rate
	Retried   int // after throttles, server errors and broken connections
}

// Requested counts the requests of a store call.
func (m *Fleet) Requested(upstream string, r Requests) {
	up := label(upstream)
	m.requests.WithLabelValues(up).Observe(float64(r.Sent))
	m.conditions.WithLabelValues(up).Add(float64(r.Failed))
	m.throttled.WithLabelValues(up).Add(float64(r.Throttled))
	m.retried.WithLabelValues(up).Add(float64(r.Retried))
}

// Reached records that the store has answered since the process started. Cold records whether the store has no record of the use
// of an upstream's limits.
func (m *Fleet) Reached() { m.reached.Set(1) }

func (m *Fleet) Cold(upstream string, is bool) {
	v := 0.0
	if is {
		v = 1
	}
	m.cold.WithLabelValues(label(upstream)).Set(v)
}

// Clock records the uncertainty of the clock of a store that does not return its time with each response.
func (m *Fleet) Clock(k fleet.ClockState) {
	v := k.Uncertainty.Seconds()
	if !k.Known {
		v = math.Inf(1)
	}
	m.clock.Set(v)
}

// Forget drops every series of the upstream.
func (m *Fleet) Forget(upstream string) {
	of := prometheus.Labels{"upstream": label(upstream)}
	for _, v := range []vector{m.calls, m.served, m.units, m.leased, m.returned, m.repeats, m.conditions, m.throttled, m.retried, m.requests, m.took, m.cold} {
		v.DeletePartialMatch(of)
	}
}

// Watch exports the state of a fleet with each scrape.
func (m *Fleet) Watch(f *fleet.Fleet) { m.reg.MustRegister(fleetCollector{f}) }

type fleetCollector struct{ fleet *fleet.Fleet }

var fleetGauges = struct{ held, away, alive, part, state, silent, unknown *prometheus.Desc }{
	held:  gauge("weir_lease_units_held"),
	away:  gauge("weir_fallback_active"),
	alive: gauge("weir_fleet_instances"),

	part:    gauge("weir_fleet_part"),
	state:   gauge("weir_fleet_state"),
	silent:  gauge("weir_fleet_unresponsive_part"),
	unknown: gauge("weir_fleet_unknown_part"),
}

func (c fleetCollector) Describe(to chan<- *prometheus.Desc) {
	to <- fleetGauges.held
	to <- fleetGauges.away
	to <- fleetGauges.alive
	to <- fleetGauges.part
	to <- fleetGauges.state
	to <- fleetGauges.silent
	to <- fleetGauges.unknown
}

func (c fleetCollector) Collect(to chan<- prometheus.Metric) {
	for group, n := range c.fleet.Held() {
		to <- prometheus.MustNewConstMetric(fleetGauges.held, prometheus.GaugeValue, float64(n), label(group))
	}
	away := 0.0
	if c.fleet.Away() {
		away = 1
	}
	to <- prometheus.MustNewConstMetric(fleetGauges.away, prometheus.GaugeValue, away)
	to <- prometheus.MustNewConstMetric(fleetGauges.alive, prometheus.GaugeValue, float64(c.fleet.Alive()))
	for _, p := range c.fleet.Places() {
		up := label(p.Group)
		show := func(d *prometheus.Desc, v float64, more ...string) {
			to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, append([]string{up}, more...)...)
		}
		show(fleetGauges.part, p.Part)
		show(fleetGauges.silent, p.Out)
		show(fleetGauges.unknown, p.Unknown)
		for _, s := range limit.States {
			on := 0.0
			if s == p.State {
				on = 1
			}
			show(fleetGauges.state, on, s.String())
		}
	}
}
