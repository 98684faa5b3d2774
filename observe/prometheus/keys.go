package weirprom

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// mostKeys is the maximum number of keys with separate series in a scrape, over all limits whose keys are labels. Each key has
// two series.
const mostKeys = 10_000

var keyGauges = struct{ left, used *prometheus.Desc }{
	left: gauge("weir_limit_key_units_remaining"),
	used: gauge("weir_limit_key_used_ratio"),
}

// ShowKeys sets how keys become label values, for scopes whose keys are labels (limit.Limit.Labels). Keys for which show returns
// "" are combined as "other". Without ShowKeys, the keys themselves are the label values.
func (m *Metrics) ShowKeys(show func(scope, key string) string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.showKey = show
}

// A keyName identifies a key of a limit. A keySight is the state of that key at one moment.
type (
	keyName  struct{ upstream, limit, key string }
	keySight struct {
		keyName
		left int64
		used float64
	}
)

// keySights collects the keys of a scrape: separate series for the most used keys, and a combined series per limit for the rest.
type keySights struct {
	most   int
	show   func(scope, key string) string
	each   []keySight // up to twice as many as most
	last   *keySight  // the least used key with a separate series, once there were more than most
	series map[keyName]keySight
}

// matters orders keys by use, most used first. Ties are ordered by name, so that two scrapes show the same keys.
func (k *keySight) matters(o *keySight) int {
	return cmp.Or(cmp.Compare(o.used, k.used), cmp.Compare(k.upstream, o.upstream), cmp.Compare(k.limit, o.limit), cmp.Compare(k.key, o.key))
}

func (s *keySights) look(upstream string, u *weir.Upstream) {
	for v := range u.LookKeys() {
		k := keySight{keyName{upstream, v.Limit.Name, v.Key}, v.Level.Left, usedOf(&v.Level)}
		if s.show != nil && k.key != limit.Other {
			k.key = s.shown(v.Limit.Scope, v.Key)
		}
		s.add(&k)
	}
}

// shown returns a key as a label value, or "" if it must not be shown. Of a combination, each value must be shown.
func (s *keySights) shown(scope, key string) string {
	hidden := false
	text, ok := scopes.Map(scope, key, func(scope, value string) string {
		shown := s.show(scope, value)
		hidden = hidden || shown == "" && value != ""
		return shown
	})
	if hidden || !ok {
		return ""
	}
	return text
}

// usedOf returns the used fraction of a level.
func usedOf(l *limit.Level) float64 {
	if l.Full <= 0 {
		return 0
	}
	return min(1, max(0, float64(l.Full-l.Left)/float64(l.Full)))
}

func (s *keySights) add(k *keySight) {
	if k.key == "" || k.key == limit.Other || s.last != nil && s.last.matters(k) < 0 {
		s.other(k)
		return
	}
	if s.each = append(s.each, *k); len(s.each) >= 2*s.most {
		s.cut()
	}
}

// cut moves the keys beyond the maximum to the combined series.
func (s *keySights) cut() {
	if len(s.each) <= s.most {
		return
	}
	slices.SortFunc(s.each, func(a, b keySight) int { return a.matters(&b) })
	for i := range s.each[s.most:] {
		s.other(&s.each[s.most+i])
	}
	s.each = s.each[:s.most]
	s.last = new(s.each[s.most-1])
}

func (s *keySights) other(k *keySight) {
	o := *k
	o.key = limit.Other
	s.merge(&o)
}

// merge adds a key to its series. Keys that are not UTF-8 can become equal. Their series then has the worst values.
func (s *keySights) merge(k *keySight) {
	name := keyName{k.upstream, label(k.limit), label(k.key)}
	if before, ok := s.series[name]; ok {
		k.left, k.used = min(k.left, before.left), max(k.used, before.used)
	}
	s.series[name] = keySight{name, k.left, k.used}
}

// collectKeys sends the keys that are labels.
func collectKeys(to chan<- prometheus.Metric, watched map[string]*weir.Upstream, show func(scope, key string) string) {
	s := keySights{most: mostKeys, show: show, series: make(map[keyName]keySight)}
	for name, u := range watched {
		s.look(name, u)
	}
	s.cut()
	for i := range s.each {
		s.merge(&s.each[i])
	}
	for name, k := range s.series {
		to <- prometheus.MustNewConstMetric(keyGauges.left, prometheus.GaugeValue, float64(k.left), name.upstream, name.limit, name.key)
		to <- prometheus.MustNewConstMetric(keyGauges.used, prometheus.GaugeValue, k.used, name.upstream, name.limit, name.key)
	}
}
