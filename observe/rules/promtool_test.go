package rules

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// promtool runs promtool on the rules and a file of tests.
func promtool(t *testing.T, tests string) {
	t.Helper()
	dir := t.TempDir()
	for name, data := range map[string][]byte{"rules.yaml": Prometheus(Options{Cost: 50, Names: played()}), "tests.yaml": []byte(tests)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "tests.yaml"}} {
		cmd := exec.Command("promtool", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

// test returns a promtool test: series, and the alerts at each time.
func (p *play) test(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "- name: %q\n  interval: 15s\n  input_series:\n", name)
	all := rest()
	maps.Copy(all, p.series)
	for _, s := range slices.Sorted(maps.Keys(all)) {
		if all[s] != "" {
			fmt.Fprintf(&b, "  - series: '%s'\n    values: '%s'\n", s, strings.TrimSpace(all[s]))
		}
	}
	fmt.Fprintln(&b, "  promql_expr_test:")
	for _, at := range slices.Sorted(maps.Keys(p.fires)) {
		fmt.Fprintf(&b, "  - expr: count by (alertname, upstream) (ALERTS{alertstate=\"firing\"})\n    eval_time: %s\n    exp_samples:\n", at)
		for _, f := range p.fires[at] {
			name, upstream, _ := strings.Cut(f, " ")
			labels := fmt.Sprintf("alertname=%q", name)
			if upstream != "" {
				labels += fmt.Sprintf(", upstream=%q", upstream)
			}
			fmt.Fprintf(&b, "    - labels: '{%s}'\n      value: 1\n", labels)
		}
	}
	return b.String()
}

const head = "rule_files: [rules.yaml]\nevaluation_interval: 30s\ntests:\n"

// Each alert fires when it should, and no other alert fires in its place.
func TestEachAlertIsPlayed(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(head)
	fired, silent := make(map[string]bool), make(map[string]bool)
	for _, name := range slices.Sorted(maps.Keys(plays)) {
		p := plays[name]
		b.WriteString(p.test(name))
		for _, fires := range p.fires {
			if slices.ContainsFunc(fires, func(f string) bool { return strings.HasPrefix(f, p.about+" ") }) {
				fired[p.about] = true
			} else {
				silent[p.about] = true
			}
		}
	}
	for _, a := range Alerts(Options{Cost: 50}) {
		if !fired[a.Name] || !silent[a.Name] {
			t.Errorf("%s: fires in a play: %v, is silent in one: %v", a.Name, fired[a.Name], silent[a.Name])
		}
	}
	promtool(t, b.String())
}

// A week of normal load causes no alert: calls with a daily peak, and the usual failures, waits, refusals and degradations.
func TestAWeekOfNormalLoadIsSilent(t *testing.T) {
	t.Parallel()
	days := campaign.Of(1, 7)
	var b strings.Builder
	fmt.Fprintf(&b, "rule_files: [rules.yaml]\nevaluation_interval: 1m\ntests:\n- interval: 1m\n  input_series:\n")
	for name, each := range normal(days) {
		fmt.Fprintf(&b, "  - series: '%s'\n    values: '%s'\n", name, each)
	}
	for name, v := range rest() {
		if _, ok := normal(0)[name]; !ok {
			v, _, _ = strings.Cut(v, "x")
			if name == resets {
				v = fmt.Sprint(days*86400 + 3600)
			}
			fmt.Fprintf(&b, "  - series: '%s'\n    values: '%sx%d'\n", name, v, days*1440)
		}
	}
	// Check that calls were made, or the test might prove nothing.
	fmt.Fprintf(&b, "  promql_expr_test:\n  - expr: count_over_time(ALERTS{alertstate=\"firing\"}[8d])\n    eval_time: %dh\n    exp_samples:\n", days*24)
	fmt.Fprintf(&b, "  - expr: count(weir:calls:increase5m > 1000)\n    eval_time: %dh\n    exp_samples:\n    - value: 1\n", days*24)
	begin := time.Now()
	promtool(t, b.String())
	t.Logf("%d days played in %v", days, time.Since(begin))
}

// normal returns the changing series of a week: by minute, with a peak at 14:00 of five times the night's calls.
func normal(days int) map[string]string {
	all := make(map[string]*strings.Builder)
	total := make(map[string]float64)
	add := func(series string, perMinute float64, minutes int) {
		b := all[series]
		if b == nil {
			b = new(strings.Builder)
			all[series] = b
		}
		fmt.Fprintf(b, "%.2f+%.2fx%d ", total[series], perMinute, minutes-1)
		total[series] += perMinute * float64(minutes)
	}
	for h := range max(1, days*24+1) {
		rate := []float64{600, 600, 600, 600, 600, 600, 900, 1200, 1800, 2400, 2700, 2700, 2400, 2700, 3000, 2700, 2400, 1800, 1500, 1200, 900, 900, 600, 600}[h%24]
		add(calls("ok"), .995*rate, 60)
		add(calls("failed"), .002*rate, 60)
		add(calls("refused"), .003*rate, 60)
		add(messages("send", "allowed"), .98*rate, 60)
		add(messages("send", "refused"), .02*rate, 60)
		add(closed("1000"), .05*rate, 60)
		add(closed("1013"), .001*rate, 60)
		add(decisions("allowed"), rate, 60)
		add(decisions("rate_limited"), .002*rate, 60)
		add(decisions("circuit_open"), .001*rate, 60)
		add(gaveUp, .0002*rate, 60)
		peak := max(0, rate-2000) / 20 // calls wait at the peak
		for name := range waits("", "", "") {
			add(name, peak, 60)
		}
		add(of("weir_llm_answers_total", `upstream="api",tier="primary",degraded="false"`), .97*rate, 60)
		add(of("weir_llm_answers_total", `upstream="api",tier="second",degraded="true"`), .03*rate, 60)
		add(spentAll, rate/6000, 60)
	}
	out := make(map[string]string)
	for name, b := range all {
		out[name] = strings.TrimSpace(b.String())
	}
	return out
}
