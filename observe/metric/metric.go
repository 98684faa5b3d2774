// Package metric declares every metric of weir once: its name, type, labels and help. Packages that register, document or
// export metrics read it.
package metric

// A Kind is the type of a metric, in Prometheus's terms.
type Kind string

const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// A Metric describes one metric. It is a value and may be shared.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string // in the order of their values
	Help   string
}

// All returns the metrics, grouped by subject.
func All() []Metric { return all }

// Get returns the metric with this name. It panics if there is none: a test of each package that registers metrics catches that.
func Get(name string) Metric {
	for _, m := range all {
		if m.Name == name {
			return m
		}
	}
	panic("metric: there is no " + name)
}

// Help returns the help of a metric.
func Help(name string) string { return Get(name).Help }
