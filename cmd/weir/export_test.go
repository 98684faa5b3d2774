package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/cli"
)

// exporting runs weir export.
func exporting(t *testing.T, args ...string) (out, says string, code int) {
	t.Helper()
	var written, said bytes.Buffer
	err := run(t.Context(), world{args: append([]string{"export"}, args...), out: &written, err: &said, env: os.LookupEnv})
	code = cli.Exit("weir", err, &said)
	return written.String(), said.String(), code
}

func TestExportWritesWhatIsInTheTree(t *testing.T) {
	for name, file := range map[string]string{
		"prometheus-rules": "prometheus/weir.rules.yaml", "alertmanager": "prometheus/alertmanager.yaml", "grafana": "grafana/weir.json", "cloudformation": "cloudformation/weir.json",
	} {
		want, err := os.ReadFile("../../deploy/" + file)
		if err != nil {
			t.Fatal(err)
		}
		if out, _, code := exporting(t, name); code != 0 || out != string(want) {
			t.Errorf("weir export %s: code %d, %d bytes that are not those of deploy/%s", name, code, len(out), file)
		}
	}
	out, _, _ := exporting(t, "prometheus-rules", "-cost-per-hour", "7.5", "-runbooks", "https://wiki.example/weir", "-job", "sidecars")
	for _, want := range []string{"[1h])) > 7.5", "https://wiki.example/weir/cost-high.md", `up{job=\"sidecars\"}`} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %s in\n%s", want, out)
		}
	}
	for _, args := range [][]string{{"export"}, {"export", "rules"}, {"export", "grafana", "-job", "x"}, {"export", "prometheus-rules", "-job", `a"b`}, {"prometheus-rules", "-cost-per-hour", "-1"}} {
		if out, says, code := exporting(t, args...); code != 2 || out != "" || says == "" {
			t.Errorf("weir export %v: code %d, %q, %q", args, code, out, says)
		}
	}
}

// Each flag adds a name of recorded upstreams. Together they replace s3.
func TestNamesAreExported(t *testing.T) {
	for _, c := range []struct {
		args      []string
		has, lack string
	}{
		{nil, "record: s3_requests_total", "objects"},
		{[]string{"-record", "store=objects", "-record", "b=x_seconds,x,x_bad"}, "record: objects_requests_total", "s3_requests_total"},
		{[]string{"-record", "store=objects", "-record", "b=x_seconds,x,x_bad"}, "record: operation:x_bad:rate5m", "s3_requests_total"},
		{[]string{"-record", "none"}, "record: weir:calls:increase5m", "weir-names"},
	} {
		out, says, code := exporting(t, append([]string{"prometheus-rules"}, c.args...)...)
		if code != 0 || !strings.Contains(out, c.has) || strings.Contains(out, c.lack) {
			t.Errorf("%v: code %d, %q, %s", c.args, code, says, out)
		}
	}
	if out, says, code := exporting(t, "prometheus-rules", "-record", "s3=weir_calls_total"); code != 2 || out != "" || !strings.Contains(says, "weir's own") {
		t.Errorf("code %d, %q, %q", code, out, says)
	}
}

// The sampling rules have every field that CloudFormation requires. The rule for errors is written only on request, with a
// comment.
func TestExportWritesSamplingRules(t *testing.T) {
	out, says, code := exporting(t, "xray-sampling")
	for _, want := range []string{"Priority: 100", "FixedRate: 0.05", "ReservoirSize: 1\n", `ServiceName: "weir"`, `ServiceType: "*"`, `Host: "*"`, `HTTPMethod: "*"`, `URLPath: "*"`, `ResourceARN: "*"`, "Version: 1", `RuleName: "weir"`} {
		if !strings.Contains(out, want) {
			t.Errorf("got %s, want %s", out, want)
		}
	}
	if code != 0 || says != "" || strings.Contains(out, "Priority: 50") {
		t.Errorf("code %d, %q, %s; want one rule and no warning", code, says, out)
	}
	out, says, code = exporting(t, "xray-sampling", "-service", "shop", "-errors", "/orders/*")
	if code != 0 || !strings.Contains(says, "before an error can occur") || !strings.Contains(out, "Priority: 50") || !strings.Contains(out, "FixedRate: 1\n") || !strings.Contains(out, "ReservoirSize: 10") || !strings.Contains(out, `URLPath: "/orders/*"`) {
		t.Errorf("code %d, %q, %s; want the rule, and a warning", code, says, out)
	}
	for _, args := range [][]string{{"-service", ""}, {"-service", "a\"b"}, {"-errors", "orders"}} {
		if out, _, code := exporting(t, append([]string{"xray-sampling"}, args...)...); code == 0 || out != "" {
			t.Errorf("%v: code %d, %q; want that it is refused", args, code, out)
		}
	}
}
