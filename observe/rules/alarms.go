package rules

// An Alarm is a CloudWatch alarm on metrics that observe/cloudwatch publishes.
type Alarm struct {
	Name      string
	Text      string // its meaning and the remedy
	Runbook   string // its page under docs/runbooks
	Reads     []Read // one metric, or the metrics of Math
	Math      string // an expression of the reads a, b, ...; "" for a single read
	Period    int    // seconds
	Periods   int
	Points    int     // how many of the Periods must exceed the threshold; 0 means all
	Above     float64 // the default threshold
	Parameter string  // the name of the threshold's parameter; "" for a fixed threshold
	Says      string  // the description of the parameter
	Reached   bool    // the threshold itself triggers the alarm
	Whole     bool    // always over all upstreams
	Part      bool    // part of composite alarms, which notify instead
	Band      string  // an anomaly band instead of a threshold: upper, or both
}

// A Read is a CloudWatch metric and its statistic.
type Read struct{ Metric, Stat string }

// Alarms returns all alarms that are not composite.
func Alarms() []Alarm {
	return []Alarm{
		{Name: "RateLimitErrors", Runbook: "violation.md", Reads: []Read{{"RateLimitErrors", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 10, Reached: true,
			Parameter: "RateLimitErrorsThreshold", Says: "Alarm threshold: throttles in five minutes",
			Text: "The upstream throttles although weir enforces its limits. Set the limits to the upstream's real limits, or find other programs that use them."},
		{Name: "RetryExhausted", Runbook: "upstream-failing.md", Reads: []Read{{"RetryExhausted", "Sum"}}, Period: 300, Periods: 1, Above: 1, Reached: true,
			Parameter: "RetryExhaustedThreshold", Says: "Alarm threshold: calls given up in five minutes",
			Text: "weir gives up on calls. Check the upstream's status page. If it is healthy, the limits are too low for the demand, or the deadlines are too short for retries."},
		{Name: "AcquisitionFailures", Runbook: "high-throttling.md", Reads: []Read{{"RateLimiterAcquisitionFailures", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 100, Reached: true,
			Parameter: "AcquisitionFailuresThreshold", Says: "Alarm threshold: refusals in five minutes",
			Text: "weir refuses calls. The dimension Reason is rate_limited if demand exceeds a limit, quota_exhausted if a quota is used up, circuit_open if the upstream is down, or shutting_down if weir stopped while calls waited."},
		{Name: "AcquisitionWait", Runbook: "waiting-long.md", Reads: []Read{{"RateLimiterAcquisitionWait", "p99"}}, Period: 300, Periods: 3, Above: 5000,
			Parameter: "LatencyThreshold", Says: "Alarm threshold: 99th percentile of waits in milliseconds",
			Text: "Calls wait long for their turn. Ask for a higher limit or reduce demand. Calls that would wait longer than max_wait are refused."},
		{Name: "Violation", Runbook: "violation.md", Reads: []Read{{"RateLimiterViolations", "Sum"}}, Period: 60, Periods: 1, Above: 0,
			Text: "The upstream throttled a call that weir's limits had allowed. The configured limits differ from the upstream's, or another program uses the same limits. weir's log and notification contain the state of the limits."},
		{Name: "StoreLatency", Runbook: "fallback.md", Reads: []Read{{"RateLimiterAcquisitionLatency", "p99"}}, Period: 300, Periods: 3, Above: 50, Whole: true,
			Parameter: "StoreLatencyThreshold", Says: "Alarm threshold: 99th percentile of the store's response time in milliseconds",
			Text: "The fleet's store responds slowly. Check its metrics and the network. A longer lease reduces the number of requests."},
		{Name: "FallbackActivated", Runbook: "store-away.md", Reads: []Read{{"RateLimiterFallbackActivated", "Maximum"}}, Period: 60, Periods: 2, Above: 1, Reached: true, Whole: true,
			Text: "The fleet's store is unreachable, and each process uses its part of the limits. Restore the store (Redis or DynamoDB); weir reconnects automatically."},
		{Name: "StoreThrottled", Runbook: "fallback.md", Reads: []Read{{"RateLimiterStoreThrottled", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 10, Reached: true, Whole: true,
			Parameter: "StoreThrottledThreshold", Says: "Alarm threshold: store requests throttled in five minutes",
			Text: "DynamoDB throttles requests of the fleet's store, so decisions take longer. Increase the capacity of a provisioned table. If a single limit needs more than 1,000 writes per second, use a lease, lengthen it, or divide the limit by key."},
		{Name: "BreakerOpen", Runbook: "breaker-open.md", Reads: []Read{{"CircuitBreakerState", "Maximum"}}, Period: 60, Periods: 5, Above: 1, Reached: true,
			Text: "A breaker has not closed for five minutes: weir refuses calls immediately, except probes, and no probe has succeeded. weir status shows the breaker and why it opened."},
		{Name: "DeadLetters", Runbook: "dead-letters.md", Reads: []Read{{"DeadLetters", "Maximum"}}, Period: 60, Periods: 1, Above: 0,
			Text: "Deliveries became dead letters. weir dead list shows them with reasons, weir dead redrive sends them again, weir dead drop deletes them."},
		{Name: "ErrorRate", Runbook: "upstream-failing.md", Reads: []Read{{"APICallCount", "Sum"}, {"RetryExhausted", "Sum"}}, Math: "IF(FILL(a, 0) > 20, 100 * FILL(b, 0) / a, 0)", Period: 300, Periods: 2, Above: 10, Part: true,
			Parameter: "ErrorRateThreshold", Says: "Alarm threshold: calls given up in percent of attempts",
			Text: "Calls given up are a high percentage of attempts. This is a part of ModelUnhealthy, which notifies if answers are also slow."},
		{Name: "CallLatency", Runbook: "upstream-failing.md", Reads: []Read{{"APICallLatency", "p99"}}, Period: 300, Periods: 2, Above: 30000, Part: true,
			Parameter: "CallLatencyThreshold", Says: "Alarm threshold: 99th percentile of an attempt's duration in milliseconds",
			Text: "The slowest 1% of attempts take long. This is a part of ModelUnhealthy, which notifies if calls also fail."},
		{Name: "FallbackShare", Runbook: "degraded.md", Reads: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}, Math: "IF(FILL(a, 0) > 20, 100 * FILL(b, 0) / a, 0)", Period: 300, Periods: 2, Above: 10, Part: true,
			Parameter: "FallbackThreshold", Says: "Alarm threshold: answers from below the first tier in percent",
			Text: "Many answers of language models come from below the first tier of their cascade. This is a part of ModelDegraded and ChainDown."},
		{Name: "NoModel", Runbook: "chain-down.md", Reads: []Read{{"ModelChainDown", "Maximum"}}, Period: 60, Periods: 2, Above: 1, Reached: true, Part: true,
			Text: "No model of a cascade can be called, because all their breakers are open. This is a part of ChainDown."},
		{Name: "CallsUnusual", Runbook: "high-throttling.md", Reads: []Read{{"APICallCount", "Sum"}}, Period: 300, Periods: 3, Band: "both",
			Text: "The upstream gets many more or far fewer requests than usual at this time. CloudWatch learns usual values from up to two weeks of metrics."},
		{Name: "LatencyUnusual", Runbook: "upstream-failing.md", Reads: []Read{{"APICallLatency", "p90"}}, Period: 300, Periods: 3, Band: "upper",
			Text: "The upstream responds more slowly than usual at this time. CloudWatch learns usual values from up to two weeks of metrics."},
	}
}

// A Composite is an alarm that combines alarms.
type Composite struct{ Name, Text, Runbook, Rule string }

func composites() []Composite {
	return []Composite{
		{"ModelUnhealthy", "Calls fail and answers are slow: the model is unhealthy. weir status shows the tier in use.", "upstream-failing.md",
			`ALARM("${ErrorRate}") AND ALARM("${CallLatency}")`},
		{"ModelDegraded", "More than 10% of answers come from below the first tier: users get worse or older answers. weir status shows the skipped tiers with reasons.", "degraded.md",
			`ALARM("${FallbackShare}") AND NOT ALARM("${NoModel}")`},
		{"ChainDown", "No model of a cascade can be called. Users get static answers or errors.", "chain-down.md",
			`ALARM("${NoModel}") AND (ALARM("${FallbackShare}") OR ALARM("${ErrorRate}"))`},
	}
}

// A Question is a Logs Insights query on weir's log.
type Question struct{ Name, Query string }

// Questions returns all queries. The first needs the ID filled in before it is run.
func Questions() []Question {
	return []Question{
		{"weir/by correlation id", "fields @timestamp, msg, upstream, operation, reason, limit, key, attempt, class, code, after, error\n| filter id = \"PUT THE ID HERE\"\n| sort @timestamp asc\n| limit 1000"},
		{"weir/refused, by upstream, limit and reason", "filter msg = \"refused\"\n| stats count(*) + sum(coalesce(suppressed, 0)) as calls by upstream, limit, reason\n| sort calls desc"},
		{"weir/throttled by upstreams, by code", "filter msg = \"throttled\"\n| stats count(*) + sum(coalesce(suppressed, 0)) as throttles by upstream, operation, code, bin(5m)\n| sort throttles desc"},
		{"weir/given up, the latest", "fields @timestamp, upstream, operation, reason, attempts, class, code, error, id\n| filter msg = \"gave up\"\n| sort @timestamp desc\n| limit 200"},
		{"weir/breakers, pauses and the store", "fields @timestamp, msg, upstream, from, cause, after, by, error\n| filter msg like /^(breaker|paused|resumed|fallback)/\n| sort @timestamp desc\n| limit 200"},
	}
}

// A Graph is a widget of a CloudWatch dashboard.
type Graph struct {
	Title string
	Unit  string // of the axis
	Lines []Read
	Math  string // an expression of the lines a, b, ..., shown instead of them
	Stack bool
	Whole bool // always over all upstreams
}

// A Watchboard is a CloudWatch dashboard.
type Watchboard struct {
	Resource string
	Name     string // appended to the name of the stack
	Alarms   []string
	Graphs   []Graph
}

func watchboards() []Watchboard {
	return []Watchboard{
		{"Overview", "weir overview", []string{"RateLimitErrors", "RetryExhausted", "AcquisitionFailures", "AcquisitionWait", "Violation", "StoreLatency", "FallbackActivated", "StoreThrottled", "BreakerOpen", "DeadLetters"}, []Graph{
			{Title: "Requests to the upstream", Unit: "requests", Lines: []Read{{"APICallCount", "Sum"}, {"RateLimitErrors", "Sum"}, {"RetryAttempts", "Sum"}}},
			{Title: "Decisions", Unit: "attempts", Lines: []Read{{"RateLimiterAcquisitions", "Sum"}, {"RateLimiterAcquisitionFailures", "Sum"}}, Stack: true},
			{Title: "Calls given up", Unit: "calls", Lines: []Read{{"RetryExhausted", "Sum"}}},
			{Title: "Wait for a turn", Unit: "ms", Lines: []Read{{"RateLimiterAcquisitionWait", "p50"}, {"RateLimiterAcquisitionWait", "p99"}}},
			{Title: "Duration of attempts", Unit: "ms", Lines: []Read{{"APICallLatency", "p50"}, {"APICallLatency", "p99"}}},
			{Title: "The store", Unit: "times", Lines: []Read{{"RateLimiterFallbackActivated", "Maximum"}, {"RateLimiterStoreThrottled", "Sum"}, {"RateLimiterStoreRetries", "Sum"}, {"RateLimiterStoreConditions", "Sum"}}, Whole: true},
			{Title: "Store response time", Unit: "ms", Lines: []Read{{"RateLimiterAcquisitionLatency", "p50"}, {"RateLimiterAcquisitionLatency", "p99"}}, Whole: true},
			{Title: "Breakers", Unit: "1 half-open, 2 open", Lines: []Read{{"CircuitBreakerState", "Maximum"}}},
			{Title: "Dead letters", Unit: "deliveries", Lines: []Read{{"DeadLetters", "Maximum"}}},
			{Title: "Age of the oldest dead letter", Unit: "s", Lines: []Read{{"DeadLetterAge", "Maximum"}}},
		}},
		{"FMHealth", "FM Health Overview", []string{"ModelUnhealthy", "ModelDegraded", "ChainDown", "ErrorRate", "CallLatency", "FallbackShare", "NoModel"}, []Graph{
			{Title: "Answers, and answers from below the first tier", Unit: "answers", Lines: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}},
			{Title: "Degraded answers", Unit: "percent", Lines: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}, Math: "IF(FILL(a, 0) > 0, 100 * FILL(b, 0) / a, 0)"},
			{Title: "Tokens", Unit: "tokens", Lines: []Read{{"ModelInputTokens", "Sum"}, {"ModelOutputTokens", "Sum"}}},
			{Title: "Cost of models", Unit: "by the price table", Lines: []Read{{"ModelCost", "Sum"}}},
			{Title: "Cache hits and misses", Unit: "answers", Lines: []Read{{"ModelCacheHits", "Sum"}, {"ModelCacheMisses", "Sum"}}},
			{Title: "No model can be called", Unit: "1 if so", Lines: []Read{{"ModelChainDown", "Maximum"}}},
			{Title: "Calls given up", Unit: "percent of attempts", Lines: []Read{{"APICallCount", "Sum"}, {"RetryExhausted", "Sum"}}, Math: "IF(FILL(a, 0) > 0, 100 * FILL(b, 0) / a, 0)"},
			{Title: "Duration of attempts", Unit: "ms", Lines: []Read{{"APICallLatency", "p50"}, {"APICallLatency", "p90"}, {"APICallLatency", "p99"}}},
			{Title: "Throttled by models' APIs", Unit: "attempts", Lines: []Read{{"RateLimitErrors", "Sum"}}},
		}},
	}
}
