package weirprom

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// labelledUpstream has a limit of 10 a second for each tenant whose keys are labels, and a limit by user whose keys are not.
func labelledUpstream(t testing.TB) (*weir.Upstream, *Metrics, prometheus.Gatherer) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	tenants := perSecond("calls", "tenant", 10)
	tenants.Labels = true
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{tenants, perSecond("user", "user", 1_000_000)}}, weir.Options{Clock: &still{now: time.Hour}})
	m.Watch(u)
	return u, m, reg
}

func takeFor(t testing.TB, u *weir.Upstream, tenant string, n int64) {
	p, d := try(u, weir.Call{Keys: map[string]string{"tenant": tenant, "user": "ann"}, Cost: map[string]int64{limit.Requests: n}})
	if !d.Allowed {
		t.Fatalf("%q: %+v", tenant, d)
	}
	p.Report(outcome.Outcome{Class: outcome.OK})
}

// keySeries returns the number of series for each value of the label key, and the length of the longest value.
func keySeries(t testing.TB, reg prometheus.Gatherer) (n map[string]int, longest int) {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n = make(map[string]int)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() != "key" {
					continue
				}
				if n[l.GetValue()]++; !utf8.ValidString(l.GetValue()) {
					t.Errorf("%q is not UTF-8", l.GetValue())
				}
				longest = max(longest, len(l.GetValue()))
			}
		}
	}
	return n, longest
}

func TestKeysThatAreLabelsHaveTwoSeries(t *testing.T) {
	u, _, reg := labelledUpstream(t)
	takeFor(t, u, "acme", 3)
	takeFor(t, u, "blue", 10)
	takeFor(t, u, "", 10) // a caller without a tenant has no label
	check(t, reg, 7, "weir_limit_key_units_remaining", "acme", "calls", "api")
	check(t, reg, .3, "weir_limit_key_used_ratio", "acme", "calls", "api")
	check(t, reg, 0, "weir_limit_key_units_remaining", "blue", "calls", "api")
	check(t, reg, 1, "weir_limit_key_used_ratio", "blue", "calls", "api")
	if got, _ := keySeries(t, reg); len(got) != 2 || got["acme"] != 2 || got["blue"] != 2 {
		t.Errorf("series by key are %v, want two of acme and of blue", got)
	}
}

// Beyond the bound, the most used keys have their own series, in any order of arrival. The other keys share a series with the
// worst of their values.
func TestKeysBeyondTheBoundAreOthers(t *testing.T) {
	const busy = 20
	u, _, reg := labelledUpstream(t)
	for i := range 2*mostKeys + 500 {
		switch {
		case i%1000 == 0 && i/1000 < busy:
			takeFor(t, u, fmt.Sprintf("busy-%d", i/1000), 9)
		default:
			takeFor(t, u, fmt.Sprintf("calm-%d", i), 1+int64(i%2))
		}
	}
	got, _ := keySeries(t, reg)
	for i := range busy {
		if key := fmt.Sprintf("busy-%d", i); got[key] != 2 {
			t.Errorf("%s has %d series, want 2", key, got[key])
		}
	}
	if len(got) != mostKeys+1 || got[limit.Other] != 2 {
		t.Errorf("%d keys are told apart, and the others have %d series; want %d, and 2", len(got), got[limit.Other], mostKeys+1)
	}
	check(t, reg, 8, "weir_limit_key_units_remaining", limit.Other, "calls", "api")
	check(t, reg, .2, "weir_limit_key_used_ratio", limit.Other, "calls", "api")
	again, _ := keySeries(t, reg)
	for key := range again {
		if got[key] == 0 {
			t.Fatalf("the second scrape has %s, the first did not, and nothing happened between them", key)
		}
	}
}

func TestHostileKeysBreakNoScrape(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	u, _, reg := labelledUpstream(t)
	takeFor(t, u, "acme", 9)
	long := strings.Repeat("\xffa", 5000)
	for _, key := range []string{limit.Other, "\xff", "\xfe", "\uFFFD", "a\x00b", "\"} 1\n", long + "1", long + "2", strings.Repeat("k", 1<<20)} {
		takeFor(t, u, key, 5)
	}
	for i := range 100_000 {
		takeFor(t, u, fmt.Sprintf("%x\xff", i), 1)
	}
	got, longest := keySeries(t, reg)
	if len(got) > mostKeys+1 || longest > 512 {
		t.Errorf("%d keys are told apart, the longest has %d bytes", len(got), longest)
	}
	for key, n := range got {
		if n > 2 {
			t.Errorf("%q has %d series", key, n)
		}
	}
	check(t, reg, .9, "weir_limit_key_used_ratio", "acme", "calls", "api")
	check(t, reg, 5, "weir_limit_key_units_remaining", "\uFFFD", "calls", "api") // three keys that are now equal
	check(t, reg, 5, "weir_limit_key_units_remaining", limit.Other, "calls", "api")
}

func TestKeysThatNothingHidesAreOthers(t *testing.T) {
	u, m, reg := labelledUpstream(t)
	takeFor(t, u, "acme", 3)
	m.ShowKeys(veil.New("", nil).Label)
	if got, _ := keySeries(t, reg); len(got) != 1 || got[limit.Other] != 2 {
		t.Errorf("series by key are %v, want two of the others", got)
	}
	check(t, reg, 7, "weir_limit_key_units_remaining", limit.Other, "calls", "api")
	m.ShowKeys(veil.New("", []string{"tenant"}).Label)
	check(t, reg, 7, "weir_limit_key_units_remaining", "acme", "calls", "api")
}

// A combination of scopes is a label if each of its values may be shown.
func TestCombinationIsLabelIfEachValueMayBeShown(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	m := New(reg)
	m.ShowKeys(veil.New("", []string{"run", "tool"}).Label)
	pair := func(scope string) limit.Limit {
		l := perSecond(scope, scope, 10)
		l.Labels = true
		return l
	}
	u := newUpstream(t, "api", weir.Policy{Limits: []limit.Limit{pair("run, tool"), pair("run, user"), pair("tool, user")}}, weir.Options{Clock: &still{now: time.Hour}})
	m.Watch(u)
	p, _ := try(u, weir.Call{Keys: map[string]string{"run": "r1", "tool": "a b", "user": "ann"}})
	p.Report(outcome.Outcome{Class: outcome.OK})
	if got, _ := keySeries(t, reg); len(got) != 2 || got[`run=r1, tool="a b"`] != 2 || got[limit.Other] != 4 {
		t.Errorf("series by key are %v", got)
	}
}
