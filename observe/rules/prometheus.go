package rules

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// heading stands at the head of every file that is made of this package.
const heading = "# Made by weir export; it is changed in observe/rules."

// Prometheus are the rules, as a file of Prometheus 2.42 and later.
func Prometheus(o Options) []byte {
	o = o.withDefaults()
	var b bytes.Buffer
	fmt.Fprintln(&b, heading+"\n#\n#   promtool check rules weir.rules.yaml\n# Alerts and what they read are one group, so that it is there when they do.\ngroups:\n- name: weir\n  rules:")
	for _, r := range Records() {
		fmt.Fprintf(&b, "  - record: %s\n    expr: %s\n", r.Name, quoted(r.Expr))
	}
	for _, a := range Alerts(o) {
		fmt.Fprintf(&b, "  - alert: %s\n    expr: %s\n", a.Name, quoted(a.Expr))
		if a.For > 0 {
			fmt.Fprintln(&b, "    for:", length(a.For))
		}
		if a.Keep > 0 {
			fmt.Fprintln(&b, "    keep_firing_for:", length(a.Keep))
		}
		fmt.Fprintf(&b, "    labels:\n      severity: %s\n    annotations:\n", a.Severity)
		fmt.Fprintf(&b, "      summary: %s\n      description: %s\n      runbook_url: %s\n", quoted(a.Summary), quoted(a.Text), quoted(o.Runbooks+a.Runbook()))
	}
	writeNames(&b, o.Names)
	return b.Bytes()
}

// Alertmanager is a configuration of Alertmanager that says which alerts follow from which. Its receiver is to be
// replaced.
func Alertmanager() []byte {
	var b bytes.Buffer
	fmt.Fprintln(&b, heading)
	fmt.Fprint(&b, `# Where people are told of alerts is for you to say: the webhook stands for it.
route:
  receiver: people
  group_by: [job, upstream]
  group_wait: 10s
  group_interval: 1m
  repeat_interval: 4h
receivers:
- name: people
  webhook_configs:
  - url: http://127.0.0.1:9095/
# One fault is told of once.
inhibit_rules:
`)
	follows := followed()
	for _, source := range slices.Sorted(maps.Keys(follows)) {
		equal := "[job, upstream]"
		if source == "WeirStoreAway" {
			equal = "[job]"
		}
		fmt.Fprintf(&b, "- source_matchers: [alertname=%s]\n  target_matchers: [alertname=~%s]\n  equal: %s\n", source, quoted(strings.Join(follows[source], "|")), equal)
	}
	return b.Bytes()
}

// table is the table of alerts, in Markdown, for a page that lies in docs.
func table() string {
	var b strings.Builder
	all := Alerts(Options{Cost: 20})
	slices.SortStableFunc(all, func(a, b Alert) int { return strings.Compare(a.Severity, b.Severity) })
	for i, a := range all {
		if i == 0 || a.Severity != all[i-1].Severity {
			fmt.Fprintf(&b, "\nAlerts with the severity `%s`:\n\n", a.Severity)
		}
		when := ""
		if a.For > 0 {
			when = " (after " + length(a.For) + ")"
		}
		summary := strings.NewReplacer("{{ $labels.", "", "{{ $value | humanizeDuration }}", "(duration)", "{{ $value | humanize }}", "(amount)", " }}", "").Replace(a.Summary)
		fmt.Fprintf(&b, "- [`%s`](../runbooks/%s)%s: %s\n", a.Name, a.Runbook(), when, summary)
	}
	b.WriteString("\n")
	return b.String()
}

// quoted is a string of YAML, which one of JSON is.
func quoted(s string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string is always encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// length is a duration in Prometheus's form: 5m.
func length(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%dms", d.Milliseconds())
}
