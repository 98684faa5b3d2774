package weirprom

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir/observe/metric"
)

func TestOldNamesAreServedBesideNewNames(t *testing.T) {
	reg := prometheus.NewRegistry()
	NewListeners(reg).Begin("listen", "auth")
	Traces(reg, func() TraceCounts { return TraceCounts{Kept: map[string]int64{"failed": 3}} })
	families, err := OldNames(reg).Gather()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	last := ""
	for _, f := range families {
		if byName[f.GetName()] = f; f.GetName() <= last {
			t.Errorf("%s stands behind %s: want families in order, each once", f.GetName(), last)
		}
		last = f.GetName()
	}
	labels := func(name string) string {
		t.Helper()
		f := byName[name]
		if f == nil || len(f.Metric) == 0 {
			t.Fatalf("there is no %s", name)
		}
		all := ""
		for _, l := range f.Metric[0].Label {
			all += l.GetName() + "=" + l.GetValue() + " "
		}
		return all
	}
	for name, want := range map[string]string{
		"weir_listener_refused_total": "listener=listen reason=auth ",
		"weir_turned_away_total":      "listener=listen why=auth ",
		"weir_traces_total":           "reason=failed why=failed ", // one more label, so that sums stay correct
	} {
		if got := labels(name); got != want {
			t.Errorf("%s: got labels %q, want %q", name, got, want)
		}
	}
	if n := len(byName["weir_traces_total"].Metric); n != 1 {
		t.Errorf("weir_traces_total has %d series, want 1", n)
	}
}

func TestRenamesAreOfDeclaredMetrics(t *testing.T) {
	for _, r := range metric.Renames() {
		m := metric.Get(r.Name)
		for _, other := range metric.All() {
			if other.Name == r.OldName && r.OldName != r.Name {
				t.Errorf("%s is the old name of %s, and a metric", r.OldName, r.Name)
			}
		}
		has := r.Label == ""
		for _, l := range m.Labels {
			has = has || l == r.Label
		}
		if !has {
			t.Errorf("%s has no label %s", r.Name, r.Label)
		}
	}
}
