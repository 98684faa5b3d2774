package rules

// modelsMetrics are about upstreams that are language models.
var modelsMetrics = []Metric{
	{"weir_llm_answers_total", Counter, []string{"upstream", "tier", "degraded"},
		"answers of language models that began, by the tier that gave them"},
	{"weir_llm_first_content_seconds", Histogram, []string{"upstream", "tier"},
		"time until an answer began"},
	{"weir_llm_cache_total", Counter, []string{"upstream", "state"},
		"calls whose answers may be kept, by what the cache had: `hit`, `stale`, `old`, `similar` (the answer to another question) or `miss`"},
	{"weir_llm_tier_changes_total", Counter, []string{"upstream", "tier", "to"},
		"times that the breaker of a cascade's tier changed its state: `to` is `closed`, `open` or `half-open`"},
	{"weir_llm_calls_total", Counter, []string{"tenant", "user", "model"},
		"answers of models, and calls whose callers left before one had begun; those that did not say what they had used count what was expected of them"},
	{"weir_llm_tokens_total", Counter, []string{"tenant", "user", "model", "kind"},
		"tokens that these used: `input`, of which `cache_read` and `cache_write` are parts, and `output`"},
	{"weir_llm_cost_total", Counter, []string{"tenant", "user", "model"},
		"what they cost by the price table, in its currency. Tenants and users are empty unless `hash_env` hides them or `harmless` names their scopes. Models are names that callers choose: 2,000 combinations are told apart, the rest is `(other)`"},
	{"weir_llm_spent_total", Counter, nil,
		"what all of these cost"},
	{"weir_llm_tier_open", Gauge, []string{"upstream", "tier"},
		"1 while the breaker of a cascade's model is not closed; answers that are kept or were written beforehand have none"},
}
