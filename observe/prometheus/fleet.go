package weirprom

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// Fleet are the metrics of limits that are shared through a store. Make one with
// NewFleet, give its Events to fleet.New, and Watch what comes of it.
type Fleet struct {
	calls, served, units, leased, returned, repeats, conditions, throttled, retried *prometheus.CounterVec

	took, requests *prometheus.HistogramVec
	reached        prometheus.Gauge
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
		calls:      counter("weir_store_calls_total", "Calls to the store, by what came of them.", "upstream", "result"),
		served:     counter("weir_store_served_calls_total", "Attempts that the store's answers let go; many share a call.", "upstream"),
		units:      counter("weir_store_units_acquired_total", "Units that the store granted, what was leased included.", "upstream", "limit"),
		leased:     counter("weir_store_units_leased_total", "Units that were taken to be spent locally.", "upstream", "limit"),
		returned:   counter("weir_store_units_returned_total", "Units that were given back to the store.", "upstream"),
		repeats:    counter("weir_store_repeats_total", "Calls to the store that repeated one whose answer was lost.", "upstream"),
		conditions: counter("weir_store_failed_conditions_total", "Conditional writes of the store that met another's.", "upstream"),
		throttled:  counter("weir_store_throttled_total", "Requests that the store refused for rate.", "upstream"),
		retried:    counter("weir_store_retries_total", "Requests to the store that were made again.", "upstream"),
		requests:   numbers("weir_store_call_requests", "Requests that a call to the store took, the first included.", "upstream"),
		took:       histogram("weir_store_call_duration_seconds", "Time until the store answered a call; those without an answer are left out.", "upstream"),
		activated:  one("weir_fallback_activations_total", "Times that the store went away and limits were held locally."),
		outlasted:  one("weir_fallback_outlasted_total", "Times that the store was away for longer than it keeps the parts of processes."),
		resumed:    one("weir_fallback_resumptions_total", "Times that the store came back."),
		lone:       one("weir_fallback_units_total", "Units that were let go while the store was away."),
		reg:        reg,
	}
	f.reached = prometheus.NewGauge(prometheus.GaugeOpts{Name: "weir_store_reached", Help: "1 once the store has answered."})
	f.cold = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "weir_store_cold", Help: "1 while the store does not know what was used of the upstream's limits, and counts all as used up.",
	}, []string{"upstream"})
	reg.MustRegister(f.reached, f.cold, f.calls, f.served, f.units, f.leased, f.returned, f.repeats, f.conditions, f.throttled, f.retried, f.requests, f.took, f.activated, f.outlasted, f.resumed, f.lone)
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
	away:  gauge("weir_fallback_active", "1 while the store is away and limits are held locally."),
	alive: gauge("weir_fleet_instances", "Instances that are known to share the store, this one included."),

	part:    gauge("weir_fleet_part", "Part of each limit that this process holds, from 0 to 1: what it may use without the store.", "upstream"),
	state:   gauge("weir_fleet_state", "1 for how this process stands to the store, of new, heard, cut_off, slow and out.", "upstream", "state"),
	silent:  gauge("weir_fleet_silent_part", "Parts of processes that the store does not hear, from 0 to 1: it grants so much less.", "upstream"),
	unknown: gauge("weir_fleet_unknown_part", "Of these, parts that may be held since before the store was emptied.", "upstream"),
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
