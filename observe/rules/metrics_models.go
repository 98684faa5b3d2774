package rules

// modelsMetrics are about upstreams that are language models.
var modelsMetrics = []Metric{
	{"weir_llm_answers_total", Counter, []string{"upstream", "tier", "degraded"},
		"model answers that began, by tier"},
	{"weir_llm_first_content_seconds", Histogram, []string{"upstream", "tier"},
		"time until an answer began"},
	{"weir_llm_cache_total", Counter, []string{"upstream", "state"},
		"cacheable calls by cache state: `hit`, `stale`, `old`, `similar` (the answer to a similar question) or `miss`"},
	{"weir_llm_tier_changes_total", Counter, []string{"upstream", "tier", "to"},
		"state changes of a cascade tier's breaker to `closed`, `open` or `half-open`"},
	{"weir_llm_calls_total", Counter, []string{"tenant", "user", "model"},
		"model answers, and calls whose callers disconnected before the answer began; without reported usage, the estimate counts"},
	{"weir_llm_tokens_total", Counter, []string{"tenant", "user", "model", "kind"},
		"tokens used: `input`, which includes `cache_read` and `cache_write`, and `output`"},
	{"weir_llm_cost_total", Counter, []string{"tenant", "user", "model"},
		"cost by the price table, in its currency. Tenants and users are empty unless `hash_env` hides them or `harmless` names their scopes. Beyond 2,000 combinations, the labels are `(other)`"},
	{"weir_llm_spent_total", Counter, nil,
		"total cost of all models"},
	{"weir_llm_tier_open", Gauge, []string{"upstream", "tier"},
		"1 while the breaker of a cascade's model is not closed; cached and static tiers have no series"},
}
