package rules

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// A Naming says under which other names Prometheus records how the operations of an upstream fare, for dashboards
// that were written for those.
type Naming struct {
	Upstream string
	Latency  string // a histogram, in seconds: NAME_bucket, NAME_sum and NAME_count
	Requests string // a counter
	Errors   string // a counter, by class
}

// NamesOfS3 are what is recorded of an upstream called s3 if nothing else is said. Its design publishes no names: these are
// made as Prometheus has it.
func NamesOfS3() []Naming { return []Naming{named("s3", "s3")} }

func named(upstream, prefix string) Naming {
	return Naming{upstream, prefix + "_request_duration_seconds", prefix + "_requests_total", prefix + "_errors_total"}
}

// ParseNaming reads UPSTREAM, UPSTREAM=PREFIX or UPSTREAM=LATENCY,REQUESTS,ERRORS.
func ParseNaming(s string) (Naming, error) {
	upstream, names, said := strings.Cut(s, "=")
	if !said {
		names = notInNames.ReplaceAllString(upstream, "_")
	}
	n := named(upstream, names)
	if all := strings.Split(names, ","); len(all) == 3 {
		n.Latency, n.Requests, n.Errors = all[0], all[1], all[2]
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

// errorClasses are those of attempts that are errors.
const errorClasses = "throttled|failed|unknown"

// Records are what is recorded under the names. Counters and the histogram are those of each instance, as it would tell them
// itself: what is added up over instances is no counter any more when one of them starts anew. Rates and quantiles are of all
// of them, named as Prometheus names what it records.
func (n Naming) Records() []Record {
	of := func(metric, more string) string { return fmt.Sprintf("%s{upstream=%q%s}", metric, n.Upstream, more) }
	sum := func(by, expr string) string { return "sum by (" + by + ") (" + expr + ")" }
	rate := func(series string) string { return "rate(" + series + "[5m])" }
	attempts, failed := of("weir_attempts_total", ""), of("weir_attempts_total", `,class=~"`+errorClasses+`"`)
	buckets := of("weir_attempt_duration_seconds_bucket", "")
	const each, all = "job, instance, upstream, operation", "job, upstream, operation"
	records := []Record{
		{n.Requests, sum(each, attempts)},
		{n.Errors, sum(each+", class", failed)},
		{n.Latency + "_bucket", sum(each+", le", buckets)},
		{n.Latency + "_sum", sum(each, of("weir_attempt_duration_seconds_sum", ""))},
		{n.Latency + "_count", sum(each, of("weir_attempt_duration_seconds_count", ""))},
		{"operation:" + strings.TrimSuffix(n.Requests, "_total") + ":rate5m", sum(all, rate(attempts))},
		{"operation:" + strings.TrimSuffix(n.Errors, "_total") + ":rate5m", sum(all, rate(failed))},
	}
	for _, q := range []struct{ name, of string }{{"p50", "0.5"}, {"p95", "0.95"}, {"p99", "0.99"}} {
		records = append(records, Record{"operation:" + n.Latency + ":" + q.name, "histogram_quantile(" + q.of + ", " + sum(all+", le", rate(buckets)) + ")"})
	}
	return records
}

// writeNames writes the group of what is recorded under other names.
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
