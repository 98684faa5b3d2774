package weirprom

import (
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

func modelsEverything(reg prometheus.Registerer) *Models {
	m := NewModels(reg, func() iter.Seq[ModelUse] {
		return func(yield func(ModelUse) bool) {
			yield(ModelUse{Tenant: "acme", User: "ann", Model: "claude", Calls: 2, Input: 100, Output: 20, CacheRead: 30, CacheWrite: 40, Cost: 0.25})
		}
	}, func() iter.Seq[TierState] {
		return func(yield func(TierState) bool) { yield(TierState{Upstream: "chat", Tier: "primary", Open: true}) }
	})
	m.Answered("chat", "primary", false, "miss", time.Second)
	m.TierChanged("chat", "primary", "open")
	m.Replayed("chat", "refused")
	return m
}

func TestWhatModelsCostIsCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	m := modelsEverything(reg)
	want := `
# HELP weir_llm_cost_total Cost by the price table, in its currency.
# TYPE weir_llm_cost_total counter
weir_llm_cost_total{model="claude",tenant="acme",user="ann"} 0.25
# HELP weir_llm_tokens_total Tokens used: input, which includes cache_read and cache_write, and output.
# TYPE weir_llm_tokens_total counter
weir_llm_tokens_total{kind="cache_read",model="claude",tenant="acme",user="ann"} 30
weir_llm_tokens_total{kind="cache_write",model="claude",tenant="acme",user="ann"} 40
weir_llm_tokens_total{kind="input",model="claude",tenant="acme",user="ann"} 100
weir_llm_tokens_total{kind="output",model="claude",tenant="acme",user="ann"} 20
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_llm_cost_total", "weir_llm_tokens_total"); err != nil {
		t.Error(err)
	}
	m.Forget("chat")
	if n := testutil.CollectAndCount(m, "weir_llm_answers_total", "weir_llm_cache_total"); n != 0 {
		t.Errorf("%d series are left of an upstream that is gone", n)
	}
	m.Answered("chat", "primary", false, "miss", time.Second) // the series exists again
	want = `
# HELP weir_llm_answers_total Model answers that began, by tier.
# TYPE weir_llm_answers_total counter
weir_llm_answers_total{degraded="false",tier="primary",upstream="chat"} 1
# HELP weir_llm_cache_total Cacheable calls by cache state: hit, stale, old, similar (the answer to a similar question) or miss.
# TYPE weir_llm_cache_total counter
weir_llm_cache_total{state="miss",upstream="chat"} 1
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "weir_llm_answers_total", "weir_llm_cache_total"); err != nil {
		t.Error(err)
	}
}
