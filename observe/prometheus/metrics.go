// Package weirprom counts what happens to calls, for Prometheus.
//
// Metrics hears the events of any number of upstreams, reads what they count when it
// is scraped, and looks at those it watches:
//
//	metrics := weirprom.New(registry)
//	s3, err := weir.New("s3", policy, weir.Options{Events: metrics.Events()})
//	...
//	metrics.Watch(s3)
//
// Labels are names that a policy declares and words of weir's own: never a
// code, a path or an id, so that no caller can make series; nor a key, but for
// limits that say so (limit.Limit.Labels), of which 10,000 are told apart.
// docs/reference/metrics.md lists every metric.
package weirprom

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/retry"
)

// Metrics are the metrics of a program's upstreams. Make one with New and share
// it; it is safe for concurrent use.
type Metrics struct {
	vectors vectors
	series  series

	mu      sync.Mutex // series are made and forgotten one at a time
	watched map[string]*weir.Upstream
	counted map[string][]counted // by upstream: each that was made by the name
	showKey func(scope, key string) string

	exemplars map[string]map[string]*exemplars // by upstream and result; of upstreams that are counted
}

// New makes metrics and registers them. Like MustRegister it panics if reg has
// them already. A nil reg registers nothing.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{vectors: newVectors(), watched: make(map[string]*weir.Upstream), counted: make(map[string][]counted), exemplars: make(map[string]map[string]*exemplars)}
	m.series.begin(m)
	if reg != nil {
		reg.MustRegister(collector{m})
	}
	return m
}

// Watch shows the upstream's limits, breakers and retry budget at each scrape,
// in place of those of another upstream by the same name.
func (m *Metrics) Watch(u *weir.Upstream) {
	m.mu.Lock()
	m.watched[label(u.Name())] = u
	m.mu.Unlock()
	m.beginAll(u)
}

// beginAll has the series at 0 that alerts are about. What would first be seen at 1 shows no increase: an alert
// would miss it.
func (m *Metrics) beginAll(u *weir.Upstream) {
	name, policy := u.Name(), u.Policy()
	for _, c := range ordinaryChanges {
		m.series.breaker.Get(breakerKey{name, c.from, c.to})
	}
	operations := []string{weir.DefaultOperation}
	for i := range policy.Operations {
		operations = append(operations, policy.Operations[i].Name)
	}
	for i := range policy.Limits {
		operations = append(operations, policy.Limits[i].Operations...)
	}
	for _, operation := range operations {
		m.series.gaveUp.Get(gaveUpKey{name, operation, observe.Why(retry.ErrBudget)})
		for i := range policy.Limits {
			if l := &policy.Limits[i]; l.Counts(operation) {
				m.series.broken.Get(brokenKey{name, operation, l.Name})
			}
		}
	}
}

// Forget drops every series of the upstream, which is no longer watched, and whose counts
// are no longer read. An event of a call that is still under way begins its series anew.
func (m *Metrics) Forget(upstream string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.watched, label(upstream))
	delete(m.counted, label(upstream))
	delete(m.exemplars, label(upstream))
	m.series.clear()
	of := prometheus.Labels{"upstream": label(upstream)}
	for _, v := range m.vectors.all() {
		v.DeletePartialMatch(of)
	}
}

// label is s as a label value, which must be UTF-8.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
