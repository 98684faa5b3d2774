package rules

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// A Naming defines other names under which Prometheus records the operations of an upstream, for dashboards that were written for
// these names.
type Naming struct {
	Upstream string
	Latency  string // in seconds: NAME by quantile, NAME_bucket, NAME_sum and NAME_count
	Requests string // a counter
	Errors   string // a counter, by class
	Gates    bool   // also record decisions, rates and breakers
}

// NamesOfS3 returns the names of the S3 design, recorded for an upstream called s3.
func NamesOfS3() []Naming { return []Naming{named("s3", "s3")} }

func named(upstream, prefix string) Naming {
	return Naming{upstream, prefix + "_latency", prefix + "_requests_total", prefix + "_errors_total", true}
}

// ParseNaming parses UPSTREAM, UPSTREAM=PREFIX or UPSTREAM=LATENCY,REQUESTS,ERRORS.
func ParseNaming(s string) (Naming, error) {
	upstream, names, said := strings.Cut(s, "=")
	if !said {
		names = notInNames.ReplaceAllString(upstream, "_")
	}
	n := named(upstream, names)
	if all := strings.Split(names, ","); len(all) == 3 {
		n = Naming{upstream, all[0], all[1], all[2], false}
	} else if len(all) != 1 {
		return Naming{}, fmt.Errorf("%q: want UPSTREAM=PREFIX, or UPSTREAM=LATENCY,REQUESTS,ERRORS", s)
	}
	if upstream == "" || names == "" || strings.ContainsAny(upstream, "\"\\\n") {
		return Naming{}, fmt.Errorf("%q: want the name of an upstream first", s)
	}
	for _, name := range []string{n.Latency, n.Requests, n.Errors} {
		if !metricName.MatchString(name) || strings.HasPrefix(name, "weir") {
			return Naming{}, fmt.Errorf("%q: no name of a metric, or one of weir's own", name)
		}
	}
	return n, nil
}

var (
	metricName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_:]*$`)
	notInNames = regexp.MustCompile(`[^a-zA-Z0-9_]`)
)

const errorClasses = "throttled|failed|unknown"

// Records returns the recording rules for the names. Counters and the histogram are recorded per instance: a sum over instances
// would decrease when one of them restarts, so it would not be a counter. Rates and quantiles are recorded over all instances,
// with names that follow Prometheus's convention for recording rules.
func (n Naming) Records() []Record {
	of := func(metric, more string) string { return fmt.Sprintf("%s{upstream=%q%s}", metric, n.Upstream, more) }
	sum := func(by, expr string) string { return "sum by (" + by + ") (" + expr + ")" }
	rate := func(series string) string { return "rate(" + series + "[5m])" }
	attempts, failed := of("weir_attempts_total", ""), of("weir_attempts_total", `,class=~"`+errorClasses+`"`)
	buckets := of("weir_attempt_duration_seconds_bucket", "")
	const each, all = "job, instance, upstream, operation", "job, upstream, operation"
	records := []Record{
		{Name: n.Requests, Expr: sum(each, attempts)},
		{Name: n.Errors, Expr: sum(each+", class", failed)},
		{Name: n.Latency + "_bucket", Expr: sum(each+", le", buckets)},
		{Name: n.Latency + "_sum", Expr: sum(each, of("weir_attempt_duration_seconds_sum", ""))},
		{Name: n.Latency + "_count", Expr: sum(each, of("weir_attempt_duration_seconds_count", ""))},
		{Name: "operation:" + strings.TrimSuffix(n.Requests, "_total") + ":rate5m", Expr: sum(all, rate(attempts))},
		{Name: "operation:" + strings.TrimSuffix(n.Errors, "_total") + ":rate5m", Expr: sum(all, rate(failed))},
	}
	for _, q := range []string{"0.5", "0.95", "0.99"} {
		records = append(records, Record{Name: n.Latency, Expr: `label_replace(histogram_quantile(` + q + `, ` + sum(all+", le", rate(buckets)) + `), "quantile", "` + q + `", "", "")`})
	}
	if !n.Gates {
		return records
	}
	const breaker = "job, instance, upstream"
	breakers := func(state string) string {
		return "clamp_max(" + sum(breaker, of("weir_breakers", `,state="`+state+`"`)) + ", 1)"
	}
	return append(records,
		Record{Name: "throttle_decisions_total", Expr: sum(each+", decision", of("weir_decisions_total", ""))},
		Record{Name: "throttle_rate_current", Expr: "min by (job, instance, upstream, limit) (" + of("weir_limit_current_rate", "") + ")"},
		Record{Name: "circuit_breaker_state", Expr: "clamp_max(2 * " + breakers("open") + " + " + breakers("half-open") + ", 2)"},
		Record{Name: "circuit_breaker_transitions_total", Expr: sum(breaker+", from, to", of("weir_breaker_transitions_total", ""))},
	)
}

// writeNames writes the rule group of the namings.
func writeNames(b *bytes.Buffer, all []Naming) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(b, "- name: weir-names\n  rules:")
	for _, n := range all {
		for _, r := range n.Records() {
			fmt.Fprintf(b, "  - record: %s\n    expr: %s\n", r.Name, quoted(r.Expr))
		}
	}
}
