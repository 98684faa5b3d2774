// Package rules describes weir's metrics in one place: every alert on them and every panel that shows them. Prometheus rules,
// Alertmanager inhibitions, the Grafana dashboard, CloudWatch alarms and the table in docs/reference/metrics.md are generated
// from it. Tests compare the generated text with the files in the repository.
package rules

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/seed1158cd35/weir/observe/metric"
)

// pageName matches the name of a page in a metric's text. The page of metrics links it.
var pageName = regexp.MustCompile(`\bdocs/((?:[\w-]+/)*([\w-]+)\.md)`)

// PageLine returns the line of a metric in docs/reference/metrics.md.
func PageLine(m metric.Metric) string {
	var labels []string
	for _, l := range m.Labels {
		labels = append(labels, "`"+l+"`")
	}
	kind := fmt.Sprint(m.Kind)
	if len(labels) > 0 {
		kind += ": " + strings.Join(labels, ", ")
	}
	return fmt.Sprintf("- `%s` (%s): %s", m.Name, kind, pageName.ReplaceAllString(m.Help, "[$2](../$1)"))
}

// Options adapt the rules to an installation. The zero Options produce the files under deploy/.
type Options struct {
	Job      string   // the Prometheus job of weir; "" means weir
	Runbooks string   // the URL of docs/runbooks; "" means the repository's
	Names    []Naming // other names to record for upstreams
	Cost     float64  // maximum cost of models per hour, in the currency of the price table; 0 means no alert
}

const (
	defaultJob      = "weir"
	defaultRunbooks = "https://github.com/seed1158cd35/weir/blob/main/docs/runbooks/"
)

func (o Options) withDefaults() Options {
	if o.Job == "" {
		o.Job = defaultJob
	}
	if o.Runbooks == "" {
		o.Runbooks = defaultRunbooks
	}
	if !strings.HasSuffix(o.Runbooks, "/") {
		o.Runbooks += "/"
	}
	return o
}
