// Package weirprom counts calls for Prometheus.
//
// Metrics receives the events of any number of upstreams. A scrape also reads the counts of these upstreams, and the state of the
// upstreams that it watches:
//
//	metrics := weirprom.New(registry)
//	s3, err := weir.New("s3", policy, weir.Options{Events: metrics.Events()})
//	...
//	metrics.Watch(s3)
//
// Labels are names that a policy declares, and fixed values. They are never a code, a path or an ID, so that no caller can create
// series. Keys are labels only for limits that request it (limit.Limit.Labels), with separate series for at most 10,000 keys.
// docs/reference/metrics.md lists every metric.
package weirprom

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/retry"
)

// Metrics are the metrics of a program's upstreams. Create one with New and share it. It is safe for concurrent use.
type Metrics struct {
	vectors vectors
	series  series

	mu      sync.Mutex // creates and removes series one at a time
	watched map[string]*weir.Upstream
	counted map[string][]counted // by upstream: the counts of every upstream of that name
	showKey func(scope, key string) string

	exemplars map[string]map[string]*exemplars // by upstream and result, for upstreams that are counted
}

// New creates the metrics and registers them. It panics if they are already registered with reg, like MustRegister. A nil reg
// registers nothing.
func New(reg prometheus.Registerer) *Metrics {
	m := &Metrics{vectors: newVectors(), watched: make(map[string]*weir.Upstream), counted: make(map[string][]counted), exemplars: make(map[string]map[string]*exemplars)}
	m.series.begin(m)
	if reg != nil {
		reg.MustRegister(collector{m})
	}
	return m
}

// Watch exports the upstream's limits, breakers and retry budget with each scrape. It replaces an upstream of the same name.
func (m *Metrics) Watch(u *weir.Upstream) {
	m.mu.Lock()
	m.watched[label(u.Name())] = u
	m.mu.Unlock()
	m.beginAll(u)
}

// beginAll creates the series that alerts read, at 0. A series that first appears with the value 1 shows no increase, so an alert
// would miss the first event.
func (m *Metrics) beginAll(u *weir.Upstream) {
	name, policy := u.Name(), u.Policy()
	m.series.breaker.Get(breakerKey{name, breaker.Closed, breaker.Open})
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

// Forget drops every series of the upstream and stops watching it and reading its counts. An event of a call that is still in
// progress creates its series again.
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

// label returns s as a label value, which must be UTF-8.
func label(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
