package observe_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/raced"
	weircw "github.com/seed1158cd35/weir/observe/cloudwatch"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// mostCases is the maximum number of scripts, if some event is too rare in the first cases.
const mostCases = 4 * 1500

var cases = uint64(raced.Of(1500, 100))

// Each case is a random script. The test compares the metrics and the log with the events of the script.
func TestEveryThrottleRetryAndExhaustionIsCountedAndLogged(t *testing.T) {
	base := uint64(time.Now().UnixNano())
	total := make(map[string]int)
	// The scripts must have covered every event, or they prove nothing.
	words := []string{
		"throttled", "violation", "retrying", "retry held back", "gave up", "refused", "paused", "breaker opened", "breaker half-open", "breaker closed",
		"attempts", "budget", "unsafe", "canceled", "deadline", "rate_limited", "circuit_open", "waited", "key",
	}
	seldom := func() (word string) {
		for _, w := range words {
			if total[w] < 10 {
				return w
			}
		}
		return ""
	}
	played := uint64(0)
	for ; played < cases || seldom() != "" && played < mostCases; played++ {
		for word, n := range compare(t, base+played) {
			total[word] += n
		}
		if t.Failed() {
			t.Fatalf("case %d: seed %d", played, base+played)
		}
	}
	if w := seldom(); w != "" {
		t.Errorf("%s came up %d times in %d cases; want 10 at least", w, total[w], played)
	}
	t.Logf("%d cases: %v", played, total)
}

// compare runs a script and returns the number of times that each event happened.
func compare(t *testing.T, seed uint64) map[string]int {
	reg, log := prometheus.NewPedanticRegistry(), new(bytes.Buffer)
	metrics := weirprom.New(reg)
	logger := slog.New(slog.NewJSONHandler(log, nil))
	published := new(bytes.Buffer)
	cloud, err := weircw.New(weircw.Config{Lines: published})
	if err != nil {
		t.Fatal(err)
	}
	s, err := newScript(seed, weir.Tee(metrics.Events(), logs.Events(logger), cloud.Events()))
	if err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	metrics.Watch(s.u)
	s.run()
	compareSeries(t, s, gather(t, reg))
	compareLines(t, s, log.String())
	if err := cloud.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	compareCloud(t, s, published.String())
	return s.words()
}

// words returns how often each word occurred.
func (s *script) words() map[string]int {
	n := make(map[string]int)
	for _, lines := range s.seen.lines {
		for _, l := range lines {
			message, rest, _ := strings.Cut(l, " operation=")
			n[message]++
			if _, why, _ := strings.Cut(rest, "why="); why != "" {
				n[why]++
			}
			if strings.Contains(rest, "key=wren") {
				n["key"]++
			}
		}
	}
	for series, v := range s.seen.series {
		if strings.HasSuffix(series, " waited") {
			n["waited"] += int(v)
		}
	}
	return n
}

func gather(t *testing.T, reg prometheus.Gatherer) []*dto.MetricFamily {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// counted maps each series to its name in the tally.
var counted = map[string]func(l map[string]string) string{
	"weir_attempts_total":            func(l map[string]string) string { return "attempts " + l["operation"] + " " + l["class"] },
	"weir_calls_total":               func(l map[string]string) string { return "calls " + l["operation"] + " " + l["result"] },
	"weir_retries_total":             func(l map[string]string) string { return "retries " + l["operation"] + " " + l["class"] },
	"weir_retries_suppressed_total":  func(l map[string]string) string { return "held back " + l["operation"] },
	"weir_calls_given_up_total":      func(l map[string]string) string { return "given up " + l["operation"] + " " + l["reason"] },
	"weir_violations_total":          func(l map[string]string) string { return "violations " + l["operation"] + " " + l["limit"] },
	"weir_pauses_total":              func(l map[string]string) string { return "pauses " + l["operation"] + " " + l["limit"] },
	"weir_breaker_transitions_total": func(l map[string]string) string { return "breaker " + l["from"] + " " + l["to"] },
	"weir_decisions_total": func(l map[string]string) string {
		text := "decisions " + l["operation"] + " " + l["decision"]
		if l["decision"] != "waited" && l["limit"] != "" { // the script cannot see the limit that caused the wait
			text += " " + l["limit"]
		}
		return text
	},
}

func compareSeries(t *testing.T, s *script, families []*dto.MetricFamily) {
	got := make(map[string]float64)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			l := labels(m)
			checkLabels(t, s, f.GetName(), l)
			if name := counted[f.GetName()]; name != nil {
				got[name(l)] += m.GetCounter().GetValue()
			}
			switch f.GetName() {
			case "weir_attempt_duration_seconds":
				got["attempt durations "+l["class"]] += float64(m.GetHistogram().GetSampleCount())
				got["attempt seconds "+l["class"]] += m.GetHistogram().GetSampleSum()
			case "weir_wait_seconds":
				got["wait durations"] += float64(m.GetHistogram().GetSampleCount())
				got["wait seconds"] += m.GetHistogram().GetSampleSum()
			case "weir_call_duration_seconds":
				got["call durations "+l["result"]] += float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(merge(got, s.seen.series))) {
		if math.Abs(got[name]-s.seen.series[name]) > 1e-6 {
			t.Errorf("%s: counted %v, the script saw %v", name, got[name], s.seen.series[name])
		}
	}
}

func merge(a, b map[string]float64) map[string]float64 {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

func labels(m *dto.Metric) map[string]string {
	l := make(map[string]string)
	for _, p := range m.GetLabel() {
		l[p.GetName()] = p.GetValue()
	}
	return l
}

// checkLabels finds labels that come from a caller or an upstream: in a script, all their texts contain "wren" or the canary.
func checkLabels(t *testing.T, s *script, metric string, l map[string]string) {
	if l["upstream"] != "upstream" {
		t.Errorf("%s%v: upstream %q", metric, l, l["upstream"])
	}
	limits := []string{""}
	for _, declared := range s.policy.Limits {
		limits = append(limits, declared.Name)
	}
	if name, ok := l["limit"]; ok && !slices.Contains(limits, name) {
		t.Errorf("%s%v: limit %q is not declared", metric, l, name)
	}
	for name, v := range l {
		if strings.Contains(v, "wren") || strings.Contains(v, canary) {
			t.Errorf("%s%v: %s %q comes from a caller", metric, l, name, v)
		}
	}
}

func compareLines(t *testing.T, s *script, log string) {
	if shows(log) {
		t.Errorf("the log shows a secret:\n%s", log)
	}
	got := make(map[string][]string)
	for text := range strings.Lines(log) {
		var l map[string]any
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if l["upstream"] != "upstream" {
			t.Errorf("%s: upstream %v", text, l["upstream"])
		}
		checkError(t, l, text)
		id, _ := l["id"].(string)
		got[id] = append(got[id], spell(l))
	}
	for id, want := range s.seen.lines {
		if !slices.Equal(got[id], want) {
			t.Errorf("lines of %q:\n%s\nthe script saw:\n%s", id, strings.Join(got[id], "\n"), strings.Join(want, "\n"))
		}
	}
	for id := range got {
		if s.seen.lines[id] == nil {
			t.Errorf("%q has lines, but should have none: %q", id, got[id])
		}
	}
}

// spell formats a line in the form of the tally.
func spell(l map[string]any) string {
	message, _ := l["msg"].(string)
	if strings.HasPrefix(message, "breaker") {
		return message
	}
	why := text(l["reason"])
	if message == "retrying" {
		why = text(l["class"])
	}
	return fmt.Sprintf("%s operation=%s limit=%s key=%s why=%s", message, text(l["operation"]), text(l["limit"]), text(l["key"]), why)
}

func text(v any) string {
	s, _ := v.(string)
	return s
}

// checkError finds lines about a failure that lack the error.
func checkError(t *testing.T, l map[string]any, line string) {
	switch l["msg"] {
	case "retrying", "gave up":
		if !strings.Contains(text(l["error"]), "api.example.com") || text(l["class"]) == "" {
			t.Errorf("no error or class: %s", line)
		}
	case "throttled":
		if text(l["code"]) != "SlowDown-wren" {
			t.Errorf("no code: %s", line)
		}
	}
}
