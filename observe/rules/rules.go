// Package rules describes what weir tells of itself, once: every metric, every alert on them and
// every panel that shows them. The rules of Prometheus, the inhibitions of its Alertmanager, the
// dashboard of Grafana, the alarms of CloudWatch and the table of docs/reference/metrics.md are made of it;
// tests compare those in the tree with what is made.
package rules

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/seed1158cd35/weir/observe/metric"
)

// pageName is the name of a page in a metric's text, of which the page makes a link.
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

// Options are what differs between those who use the rules. The zero Options are the rules as they
// stand under deploy/.
type Options struct {
	Job      string   // that Prometheus scrapes weir under; "" means weir
	Runbooks string   // the address of docs/runbooks; "" means that of the repository
	Names    []Naming // what is recorded of upstreams under other names
	Cost     float64  // what models may cost in an hour, in the currency of the price table; 0 means that no alert is about it
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
