package weirprom

import (
	"errors"
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// Fleet are the metrics of limits that are shared through a store. Make one with
// NewFleet, give its Events to fleet.New, and Watch what comes of it.
type Fleet struct {
	calls, served, units, leased, returned, repeats, conditions, throttled, retried *prometheus.CounterVec

	took, requests *prometheus.HistogramVec
	reached, clock prometheus.Gauge
	cold           *prometheus.GaugeVec
	reg            prometheus.Registerer

	activated, outlasted, resumed, lone prometheus.Counter
}

// NewFleet makes the metrics and registers them. Like MustRegister it panics if reg has
// them already.
func NewFleet(reg prometheus.Registerer) *Fleet {
	one := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	f := &Fleet{
		calls:      counter("weir_store_calls_total", "Calls to the shared store: granted (all units), short (fewer or none), error.", "upstream", "result"),
		served:     counter("weir_store_served_calls_total", "Attempts allowed by responses of the store.", "upstream"),
		units:      counter("weir_store_units_acquired_total", "Units granted by the store, including leases.", "upstream", "limit"),
		leased:     counter("weir_store_units_leased_total", "Units leased to be spent locally.", "upstream", "limit"),
		returned:   counter("weir_store_units_returned_total", "Units returned to the store.", "upstream"),
		repeats:    counter("weir_store_repeats_total", "Store calls repeated after a lost response.", "upstream"),
		conditions: counter("weir_store_failed_conditions_total", "Conditional writes (DynamoDB) that failed because of another writer.", "upstream"),
		throttled:  counter("weir_store_throttled_total", "Requests that DynamoDB throttled.", "upstream"),
		retried:    counter("weir_store_retries_total", "Repeated store requests after throttles, server errors and broken connections, at most five per request.", "upstream"),
		requests:   numbers("weir_store_call_requests", "Requests per call to DynamoDB, including repeats after throttles, server errors and failed conditions.", "upstream"),
		took:       histogram("weir_store_call_duration_seconds", "Response time of the store.", "upstream"),
		activated:  one("weir_fallback_activations_total", "Times that the store became unreachable."),
		outlasted:  one("weir_fallback_outlasted_total", "Store outages longer than outage, for which the store reserves the parts of processes."),
		resumed:    one("weir_fallback_resumptions_total", "Times that the store became reachable again."),
		lone:       one("weir_fallback_units_total", "Units allowed while the store was unreachable."),
		reg:        reg,
	}
	f.reached = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_store_reached", Help: "1 once the store has responded since the start."})
	f.cold = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_store_cold", Help: "1 while the store has no record of the usage of the upstream's limits, and counts them as used up.",
	}, []string{"upstream"})
	f.clock = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "weir_store_clock_uncertainty_seconds", Help: "How far the store's clock may be from what is known of it; +Inf while nothing is.",
	})
	reg.MustRegister(f.reached, f.cold, f.clock, f.calls, f.served, f.units, f.leased, f.returned, f.repeats, f.conditions, f.throttled, f.retried, f.requests, f.took, f.activated, f.outlasted, f.resumed, f.lone)
	return f
}

// Events is what to give to fleet.New, so that its calls to the store are counted.
func (m *Fleet) Events() fleet.Events {
	return fleet.Events{Called: m.called, Fallback: m.fallback}
}

// What can come of a call to the store.
const (
	granted = "granted" // all that was asked for
	short   = "short"   // less, or nothing
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
	if result != failing { // without an answer there is no latency, but how long weir waits, or that there was no connection
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

// Requests is what a call took of a store whose calls can take several requests.
type Requests struct {
	Sent      int // the first included
	Failed    int // conditional writes that met another's
	Throttled int // that the store refused for rate
	Retried   int // after throttles, errors of the server and broken connections
}

// Requested counts the requests of a call.
func (m *Fleet) Requested(upstream string, r Requests) {
	up := label(upstream)
	m.requests.WithLabelValues(up).Observe(float64(r.Sent))
	m.conditions.WithLabelValues(up).Add(float64(r.Failed))
	m.throttled.WithLabelValues(up).Add(float64(r.Throttled))
	m.retried.WithLabelValues(up).Add(float64(r.Retried))
}

// Reached says that the store has answered since the start, and Cold whether it does not know
// what was used of an upstream's limits.
func (m *Fleet) Reached() { m.reached.Set(1) }

func (m *Fleet) Cold(upstream string, is bool) {
	v := 0.0
	if is {
		v = 1
	}
	m.cold.WithLabelValues(label(upstream)).Set(v)
}

// Clock reports what is known of the clock of a store that does not report it with each response.
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

// Watch shows a fleet at each scrape.
func (m *Fleet) Watch(f *fleet.Fleet) { m.reg.MustRegister(fleetCollector{f}) }

type fleetCollector struct{ fleet *fleet.Fleet }

var fleetGauges = struct{ held, away, alive, part, state, silent, unknown *prometheus.Desc }{
	held:  gauge("weir_lease_units_held", "Units that this process has leased and not spent.", "upstream"),
	away:  gauge("weir_fallback_active", "1 while the store is unreachable and limits are enforced locally."),
	alive: gauge("weir_fleet_instances", "Known processes that share the store, including this one."),

	part:    gauge("weir_fleet_part", "Part of each limit that this process may use without the store, from 0 to 1.", "upstream"),
	state:   gauge("weir_fleet_state", "1 for this process's state: new (the store has never responded), heard, cut_off (it uses its part), slow (the same, because responses are too late), out (cut off for longer than outage).", "upstream", "state"),
	silent:  gauge("weir_fleet_silent_part", "Parts reserved for processes that stopped sending heartbeats, from 0 to 1.", "upstream"),
	unknown: gauge("weir_fleet_unknown_part", "The share of weir_fleet_silent_part that may have been assigned before the store was emptied.", "upstream"),
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
