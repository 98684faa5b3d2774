package rules

import (
	"strings"
	"testing"
)

// played returns the names used in the tests of promtool.
func played() []Naming {
	return append(NamesOfS3(), Naming{"api", "aws_s3_latency", "aws_s3_calls", "aws_s3_faults", false})
}

// The names of the S3 design are recorded by operation, and other names can be chosen. One of the two instances restarts in
// between.
func TestNamesOfDesignsAreRecorded(t *testing.T) {
	t.Parallel()
	attempts := func(instance, upstream, operation, class string) string {
		return `weir_attempts_total{job="weir",instance="` + instance + `",upstream="` + upstream + `",operation="` + operation + `",class="` + class + `"}`
	}
	bucket := func(le string) string {
		return `weir_attempt_duration_seconds_bucket{job="weir",instance="a",upstream="s3",operation="put",class="ok",le="` + le + `"}`
	}
	took := func(what string) string {
		return `weir_attempt_duration_seconds_` + what + `{job="weir",instance="a",upstream="s3",operation="put",class="ok"}`
	}
	var b strings.Builder
	b.WriteString(head + "- interval: 15s\n  input_series:\n")
	for _, s := range [][2]string{
		{attempts("a", "s3", "put", "ok"), "0+150x40"}, {attempts("a", "s3", "put", "throttled"), "0+15x40"}, {attempts("a", "s3", "put", "rejected"), "0+15x40"},
		{attempts("b", "s3", "put", "ok"), "9000+150x20 0+150x19"}, {attempts("a", "s3", "get", "ok"), "0+30x40"}, {attempts("a", "api", "default", "failed"), "0+30x40"},
		{bucket("0.1"), "0+75x40"}, {bucket("0.3"), "0+150x40"}, {bucket("+Inf"), "0+150x40"}, {took("sum"), "0+15x40"}, {took("count"), "0+150x40"},
		{`weir_decisions_total{job="weir",instance="a",upstream="s3",operation="put",limit="put",decision="allowed"}`, "0+150x40"},
		{`weir_decisions_total{job="weir",instance="a",upstream="s3",operation="put",limit="put",decision="rate_limited"}`, "0+15x40"},
		{`weir_limit_current_rate{job="weir",instance="a",upstream="s3",limit="put"}`, "3000+0x40"},
		{`weir_breakers{job="weir",instance="a",upstream="s3",state="closed"}`, "1+0x40"},
		{`weir_breakers{job="weir",instance="a",upstream="s3",state="half-open"}`, "1+0x40"},
		{`weir_breakers{job="weir",instance="a",upstream="s3",state="open"}`, "3+0x40"},
		{`weir_breakers{job="weir",instance="b",upstream="s3",state="closed"}`, "1+0x40"},
		{`weir_breakers{job="weir",instance="b",upstream="s3",state="half-open"}`, "1+0x40"},
		{`weir_breakers{job="weir",instance="b",upstream="s3",state="open"}`, "0+0x40"},
		{`weir_breakers{job="weir",instance="c",upstream="s3",state="closed"}`, "1+0x40"},
		{`weir_breakers{job="weir",instance="c",upstream="s3",state="half-open"}`, "0+0x40"},
		{`weir_breakers{job="weir",instance="c",upstream="s3",state="open"}`, "0+0x40"},
		{`weir_breaker_transitions_total{job="weir",instance="a",upstream="s3",from="closed",to="open"}`, "3+0x40"},
	} {
		b.WriteString("  - series: '" + s[0] + "'\n    values: '" + s[1] + "'\n")
	}
	b.WriteString("  promql_expr_test:\n")
	want := func(expr string, samples ...string) {
		b.WriteString("  - expr: '" + expr + "'\n    eval_time: 10m\n    exp_samples:\n")
		for i := 0; i < len(samples); i += 2 {
			b.WriteString("    - labels: '" + samples[i] + "'\n      value: " + samples[i+1] + "\n")
		}
	}
	of := func(name, instance, upstream, operation, more string) string {
		return name + `{job="weir",` + instance + `upstream="` + upstream + `",operation="` + operation + `"` + more + `}`
	}
	const inA, inB = `instance="a",`, `instance="b",`
	want("s3_requests_total", of("s3_requests_total", inA, "s3", "put", ""), "7200", of("s3_requests_total", inB, "s3", "put", ""), "2850", of("s3_requests_total", inA, "s3", "get", ""), "1200")
	want("s3_errors_total", of("s3_errors_total", inA, "s3", "put", `,class="throttled"`), "600")
	want(`s3_latency_bucket{le="0.1"}`, of("s3_latency_bucket", inA, "s3", "put", `,le="0.1"`), "3000")
	want("s3_latency_sum", of("s3_latency_sum", inA, "s3", "put", ""), "600")
	want("s3_latency_count", of("s3_latency_count", inA, "s3", "put", ""), "6000")
	want("operation:s3_errors:rate5m", of("operation:s3_errors:rate5m", "", "s3", "put", ""), "1")
	want(`operation:s3_requests:rate5m{operation="get"}`, of("operation:s3_requests:rate5m", "", "s3", "get", ""), "2")
	want(`s3_latency{quantile="0.5"}`, of("s3_latency", "", "s3", "put", `,quantile="0.5"`), "0.1")
	want(`round(s3_latency{quantile="0.99"}, 0.001)`, of("", "", "s3", "put", `,quantile="0.99"`), "0.296")
	want("throttle_decisions_total", of("throttle_decisions_total", inA, "s3", "put", `,decision="allowed"`), "6000", of("throttle_decisions_total", inA, "s3", "put", `,decision="rate_limited"`), "600")
	want("throttle_rate_current", `throttle_rate_current{job="weir",instance="a",upstream="s3",limit="put"}`, "3000")
	state := func(instance string) string {
		return `circuit_breaker_state{job="weir",instance="` + instance + `",upstream="s3"}`
	}
	want("circuit_breaker_state", state("a"), "2", state("b"), "1", state("c"), "0")
	want("circuit_breaker_transitions_total", `circuit_breaker_transitions_total{job="weir",instance="a",upstream="s3",from="closed",to="open"}`, "3")
	for _, r := range NamesOfS3()[0].Records() { // each has samples
		want("count("+r.Name+") > bool 0", "{}", "1")
	}
	want("aws_s3_faults", of("aws_s3_faults", inA, "api", "default", `,class="failed"`), "1200")
	want("operation:aws_s3_calls:rate5m", of("operation:aws_s3_calls:rate5m", "", "api", "default", ""), "2")
	promtool(t, b.String())
}

func TestNamesThatAreGiven(t *testing.T) {
	for s, want := range map[string]Naming{
		"s3":                  NamesOfS3()[0],
		"s3-eu":               {"s3-eu", "s3_eu_latency", "s3_eu_requests_total", "s3_eu_errors_total", true},
		"s3-eu=storage":       {"s3-eu", "storage_latency", "storage_requests_total", "storage_errors_total", true},
		"s3=lat,calls,faults": {"s3", "lat", "calls", "faults", false},
	} {
		if got, err := ParseNaming(s); got != want || err != nil {
			t.Errorf("%s: %+v, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "=s3", "s3=", "s3=a,b", "s3=a,b,c,d", "s3=a b", "s3=1,2,3", "s3=weir", `s"3=x`, "s3=a,b,weir_calls_total"} {
		if got, err := ParseNaming(s); err == nil {
			t.Errorf("%q: %+v", s, got)
		}
	}
}
