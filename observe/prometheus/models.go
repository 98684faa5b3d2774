package weirprom

import (
	"iter"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	sharded "github.com/seed1158cd35/weir/internal/counter"
)

// Models are the metrics of language model upstreams: answers by tier, cache results and use. Create one with NewModels. It is
// safe for concurrent use.
type Models struct {
	answers, cache, changes *prometheus.CounterVec
	replayed                *prometheus.CounterVec
	latency                 *prometheus.HistogramVec
	use                     func() iter.Seq[ModelUse]
	tiers                   func() iter.Seq[TierState]

	mu   sync.Mutex // serializes changes to the set of series
	tier *sharded.Book[tierKey, tierSeries]
	kept *sharded.Book[keptKey, prometheus.Counter]
}

// A tierKey identifies the tier that answered. A tierSeries has the series that count it.
type tierKey struct {
	upstream, tier string
	degraded       bool
}

type tierSeries struct {
	answers prometheus.Counter
	latency prometheus.Observer
}

type keptKey struct{ upstream, state string }

// A TierState reports whether the breaker of a tier, which is a model of a cascade, is open.
type TierState struct {
	Upstream, Tier string
	Open           bool
}

// A ModelUse is what a tenant or user has used of a model since the process began. Callers choose the names of tenants and users,
// so the counter must bound their number and combine the rest under one name.
type ModelUse struct {
	Tenant, User, Model                  string
	Calls                                int64
	Input, Output, CacheRead, CacheWrite int64   // tokens
	Cost                                 float64 // in the currency of the price table
}

// NewModels creates the metrics and registers them. use lists the use, tiers lists the models of cascades.
func NewModels(reg prometheus.Registerer, use func() iter.Seq[ModelUse], tiers func() iter.Seq[TierState]) *Models {
	m := &Models{
		answers:  counter("weir_llm_answers_total"),
		cache:    counter("weir_llm_cache_total"),
		changes:  counter("weir_llm_tier_changes_total"),
		replayed: counter("weir_stale_answers_total"),
		latency:  histogram("weir_llm_first_content_seconds"),
		use:      use,
		tiers:    tiers,
	}
	m.tier = sharded.NewBook(&m.mu, func(k tierKey) tierSeries {
		upstream, tier := label(k.upstream), label(k.tier)
		return tierSeries{m.answers.WithLabelValues(upstream, tier, strconv.FormatBool(k.degraded)), m.latency.WithLabelValues(upstream, tier)}
	})
	m.kept = sharded.NewBook(&m.mu, func(k keptKey) prometheus.Counter {
		return m.cache.WithLabelValues(label(k.upstream), k.state)
	})
	reg.MustRegister(m)
	return m
}

// Answered counts an answer that has begun. cache is the result of the cache look-up, "" if the answer is not cached.
func (m *Models) Answered(upstream, tier string, degraded bool, cache string, took time.Duration) {
	of := m.tier.Get(tierKey{upstream, tier, degraded})
	of.answers.Inc()
	of.latency.Observe(took.Seconds())
	if cache != "" {
		m.kept.Get(keptKey{upstream, cache}).Inc()
	}
}

// Begin creates the series of a tier at 0. Otherwise an alert would miss the first answer.
func (m *Models) Begin(upstream, tier string) {
	for _, degraded := range []string{"false", "true"} {
		m.answers.WithLabelValues(label(upstream), label(tier), degraded)
	}
}

// Replayed counts a failed call that was answered with an earlier response. The upstream need not be a language model.
func (m *Models) Replayed(upstream, cause string) {
	m.replayed.WithLabelValues(label(upstream), cause).Inc()
}

// TierChanged counts a change of the state of a tier's breaker.
func (m *Models) TierChanged(upstream, tier, to string) {
	m.changes.WithLabelValues(label(upstream), label(tier), to).Inc()
}

// Forget drops every series of the upstream except its use.
func (m *Models) Forget(upstream string) {
	of := prometheus.Labels{"upstream": label(upstream)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.tier.Clear() // series of other upstreams are found again by their labels
	m.kept.Clear()
	for _, v := range []vector{m.answers, m.cache, m.changes, m.replayed, m.latency} {
		v.DeletePartialMatch(of)
	}
}

var (
	usedTokens = gauge("weir_llm_tokens_total")
	usedCalls  = gauge("weir_llm_calls_total")
	spent      = gauge("weir_llm_spent_total")
	tierOpen   = gauge("weir_llm_tier_open")
	usedCost   = gauge("weir_llm_cost_total")
)

// Describe and Collect implement prometheus.Collector.
func (m *Models) Describe(to chan<- *prometheus.Desc) {
	for _, v := range []vector{m.answers, m.cache, m.changes, m.replayed, m.latency} {
		v.Describe(to)
	}
	to <- usedTokens
	to <- usedCalls
	to <- usedCost
	to <- spent
	to <- tierOpen
}

func (m *Models) Collect(to chan<- prometheus.Metric) {
	for _, v := range []vector{m.answers, m.cache, m.changes, m.replayed, m.latency} {
		v.Collect(to)
	}
	for t := range m.tiers() {
		open := 0.0
		if t.Open {
			open = 1
		}
		to <- prometheus.MustNewConstMetric(tierOpen, prometheus.GaugeValue, open, label(t.Upstream), label(t.Tier))
	}
	cost := 0.0
	defer func() { to <- prometheus.MustNewConstMetric(spent, prometheus.CounterValue, cost) }()
	for u := range m.use() {
		cost += u.Cost
		who := []string{label(u.Tenant), label(u.User), label(u.Model)}
		to <- prometheus.MustNewConstMetric(usedCalls, prometheus.CounterValue, float64(u.Calls), who...)
		to <- prometheus.MustNewConstMetric(usedCost, prometheus.CounterValue, u.Cost, who...)
		for _, k := range []struct {
			kind string
			n    int64
		}{{"input", u.Input}, {"output", u.Output}, {"cache_read", u.CacheRead}, {"cache_write", u.CacheWrite}} {
			to <- prometheus.MustNewConstMetric(usedTokens, prometheus.CounterValue, float64(k.n), append(who[:3:3], k.kind)...)
		}
	}
}
