package weirprom

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/seed1158cd35/weir/observe/metric"
)

// OldNames returns a Gatherer that also serves renamed metrics under their old names and labels, so that dashboards and alerts
// can be changed one by one. It will be removed in 0.2.0.
func OldNames(from prometheus.Gatherer) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := from.Gather()
		byName := make(map[string]*dto.MetricFamily, len(families))
		for _, f := range families {
			byName[f.GetName()] = f
		}
		for _, r := range metric.Renames() {
			f := byName[r.Name]
			switch {
			case f == nil:
			case r.OldName != r.Name:
				families = append(families, &dto.MetricFamily{Name: new(r.OldName), Help: f.Help, Type: f.Type, Unit: f.Unit, Metric: oldLabels(f.Metric, r)})
			default: // one more label on the same series, so that sums stay correct
				families[slices.Index(families, f)] = &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type, Unit: f.Unit, Metric: oldLabels(f.Metric, r)}
			}
		}
		slices.SortFunc(families, func(a, b *dto.MetricFamily) int { return strings.Compare(a.GetName(), b.GetName()) })
		return families, err
	})
}

// oldLabels returns the series with the old name of a label. If the metric kept its name, the new label stays as well.
func oldLabels(all []*dto.Metric, r metric.Rename) []*dto.Metric {
	if r.Label == "" {
		return all
	}
	old := make([]*dto.Metric, len(all))
	for i, m := range all {
		one := &dto.Metric{Gauge: m.Gauge, Counter: m.Counter, Summary: m.Summary, Untyped: m.Untyped, Histogram: m.Histogram, TimestampMs: m.TimestampMs}
		for _, l := range m.Label {
			old := l
			if l.GetName() == r.Label {
				old = &dto.LabelPair{Name: new(r.OldLabel), Value: l.Value}
			}
			if one.Label = append(one.Label, old); old != l && r.OldName == r.Name {
				one.Label = append(one.Label, l)
			}
		}
		slices.SortFunc(one.Label, func(a, b *dto.LabelPair) int { return strings.Compare(a.GetName(), b.GetName()) })
		old[i] = one
	}
	return old
}
