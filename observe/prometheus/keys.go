package weirprom

import (
	"cmp"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// mostKeys is how many keys are told apart in a scrape, all limits together whose keys are labels. Each has two series.
const mostKeys = 10_000

var keyGauges = struct{ left, used *prometheus.Desc }{
	left: gauge("weir_limit_key_units_remaining"),
	used: gauge("weir_limit_key_used_ratio"),
}

// ShowKeys says how the keys of a scope are shown that are labels (limit.Limit.Labels); one for which show says ""
// is not, but counts among the others. Without it they are shown as they are.
func (m *Metrics) ShowKeys(show func(scope, key string) string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.showKey = show
}

// A keyName says which key of which limit; a keySight is what there is of it at one moment.
type (
	keyName  struct{ upstream, limit, key string }
	keySight struct {
		keyName
		left int64
		used float64
	}
)

// keySights are the keys of a scrape: of those that are told apart the ones of which most is used, and the rest by limit.
type keySights struct {
	most   int
	show   func(scope, key string) string
	each   []keySight // up to twice as many as most
	last   *keySight  // of those that are told apart, once there were more
	series map[keyName]keySight
}

// matters has the keys first of which more is used. Among the same it is by name, so that two scrapes show the same ones.
func (k *keySight) matters(o *keySight) int {
	return cmp.Or(cmp.Compare(o.used, k.used), cmp.Compare(k.upstream, o.upstream), cmp.Compare(k.limit, o.limit), cmp.Compare(k.key, o.key))
}

func (s *keySights) look(upstream string, u *weir.Upstream) {
	for v := range u.LookKeys() {
		k := keySight{keyName{upstream, v.Limit.Name, v.Key}, v.Level.Left, usedOf(&v.Level)}
		if s.show != nil && k.key != limit.Other {
			k.key = s.show(v.Limit.Scope, v.Key)
		}
		s.add(&k)
	}
}

// usedOf is the part of what there can be that is gone.
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

// cut leaves as many as may be told apart.
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

// merge puts a key to its series. Keys that are not UTF-8 may become the same; of these the series has the worst.
func (s *keySights) merge(k *keySight) {
	name := keyName{k.upstream, label(k.limit), label(k.key)}
	if before, ok := s.series[name]; ok {
		k.left, k.used = min(k.left, before.left), max(k.used, before.used)
	}
	s.series[name] = keySight{name, k.left, k.used}
}

// collectKeys is what there is of keys that are labels.
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
