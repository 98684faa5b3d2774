package rules

// An Alarm is a condition of CloudWatch's, on metrics that observe/cloudwatch publishes.
type Alarm struct {
	Name      string
	Text      string // what it means, and what to do
	Runbook   string // its page under docs/runbooks
	Reads     []Read // one, or those of Math
	Math      string // an expression of the reads a, b, ...; "" for a single read as it is
	Period    int    // seconds
	Periods   int
	Points    int     // of these, how many must be beyond the threshold; 0 means all
	Above     float64 // the threshold's default
	Parameter string  // the threshold's name; "" for a fixed one
	Says      string  // what the parameter is
	Reached   bool    // the threshold itself is too much
	Whole     bool    // of all upstreams together always
	Part      bool    // of composite alarms, which tell of it
	Band      string  // in place of a threshold: upper, or both ends of what is usual
}

// A Read is a metric of CloudWatch's and its statistic.
type Read struct{ Metric, Stat string }

// Alarms are all single ones.
func Alarms() []Alarm {
	return []Alarm{
		{Name: "RateLimitErrors", Runbook: "violation.md", Reads: []Read{{"RateLimitErrors", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 10, Reached: true,
			Parameter: "RateLimitErrorsThreshold", Says: "Throttles in five minutes that are too many",
			Text: "The upstream throttles although weir holds it to its limits. Set the limits to those that it really has, or find out who else uses them up."},
		{Name: "RetryExhausted", Runbook: "upstream-failing.md", Reads: []Read{{"RetryExhausted", "Sum"}}, Period: 300, Periods: 1, Above: 1, Reached: true,
			Parameter: "RetryExhaustedThreshold", Says: "Calls given up in five minutes that are too many",
			Text: "Calls fail for good. Look at the upstream's own status; if it is healthy, the limits are too low for the demand or the deadlines too short for the retries."},
		{Name: "AcquisitionFailures", Runbook: "high-throttling.md", Reads: []Read{{"RateLimiterAcquisitionFailures", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 100, Reached: true,
			Parameter: "AcquisitionFailuresThreshold", Says: "Refusals in five minutes that are too many",
			Text: "weir refuses calls. The dimension Reason says why: rate_limited means more demand than the limit allows, quota_exhausted that the day's or month's amount is used up, circuit_open that the upstream is down, shutting_down that weir was told to stop while calls waited."},
		{Name: "AcquisitionWait", Runbook: "waiting-long.md", Reads: []Read{{"RateLimiterAcquisitionWait", "p99"}}, Period: 300, Periods: 3, Above: 5000,
			Parameter: "LatencyThreshold", Says: "Milliseconds of waiting that are too long, for the slowest hundredth",
			Text: "Calls wait long for their turn. Ask the upstream for a higher limit, or lower the demand; above the policy's longest wait they are refused."},
		{Name: "Violation", Runbook: "violation.md", Reads: []Read{{"RateLimiterViolations", "Sum"}}, Period: 60, Periods: 1, Above: 0,
			Text: "The upstream throttled a call that its limits had allowed: they are not those that it counts by, or somebody else uses them, too. weir's log and message say what the limits looked like."},
		{Name: "StoreLatency", Runbook: "fallback.md", Reads: []Read{{"RateLimiterAcquisitionLatency", "p99"}}, Period: 300, Periods: 3, Above: 50, Whole: true,
			Parameter: "StoreLatencyThreshold", Says: "Milliseconds until the fleet's store answers that are too long, for the slowest hundredth",
			Text: "The fleet's store takes long to answer. Look at its own metrics and at the network between; with a longer lease processes ask less often."},
		{Name: "FallbackActivated", Runbook: "store-away.md", Reads: []Read{{"RateLimiterFallbackActivated", "Maximum"}}, Period: 60, Periods: 2, Above: 1, Reached: true, Whole: true,
			Text: "The fleet's store is away, and every process keeps to its share of the limits. Restore the store (Redis or DynamoDB); weir goes back to it by itself."},
		{Name: "StoreThrottled", Runbook: "fallback.md", Reads: []Read{{"RateLimiterStoreThrottled", "Sum"}}, Period: 300, Periods: 3, Points: 2, Above: 10, Reached: true, Whole: true,
			Parameter: "StoreThrottledThreshold", Says: "Requests in five minutes that the fleet's store refuses for rate, that are too many",
			Text: "DynamoDB refuses requests of the fleet's store for rate, so decisions take longer. Give a provisioned table more capacity; if a single limit takes more than 1,000 writes a second, let processes lease (lease, or a longer one) or divide it by key."},
		{Name: "DeadLetters", Runbook: "dead-letters.md", Reads: []Read{{"DeadLetters", "Maximum"}}, Period: 60, Periods: 1, Above: 0,
			Text: "Deliveries could not be delivered, and will not be sent any more unless somebody redrives them: weir dead list says which and why, weir dead redrive sends them again, weir dead drop deletes them."},
		{Name: "ErrorRate", Runbook: "upstream-failing.md", Reads: []Read{{"APICallCount", "Sum"}, {"RetryExhausted", "Sum"}}, Math: "IF(FILL(a, 0) > 20, 100 * FILL(b, 0) / a, 0)", Period: 300, Periods: 2, Above: 10, Part: true,
			Parameter: "ErrorRateThreshold", Says: "Calls given up, in percent of attempts, that are too many for a model that is well",
			Text: "Many calls of the upstream are given up, in percent of its attempts. It is a part of ModelUnhealthy, which tells of it where answers are slow, too."},
		{Name: "CallLatency", Runbook: "upstream-failing.md", Reads: []Read{{"APICallLatency", "p99"}}, Period: 300, Periods: 2, Above: 30000, Part: true,
			Parameter: "CallLatencyThreshold", Says: "Milliseconds of an attempt that are too long for a model that is well, for the slowest hundredth",
			Text: "The upstream takes long to answer, for the slowest hundredth of the attempts. It is a part of ModelUnhealthy, which tells of it where calls fail, too."},
		{Name: "FallbackShare", Runbook: "degraded.md", Reads: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}, Math: "IF(FILL(a, 0) > 20, 100 * FILL(b, 0) / a, 0)", Period: 300, Periods: 2, Above: 10, Part: true,
			Parameter: "FallbackThreshold", Says: "Answers from below the first tier, in percent, that are too many",
			Text: "Many answers of language models come from below the first tier of their cascade, in percent of all. It is a part of ModelDegraded and ChainDown."},
		{Name: "NoModel", Runbook: "chain-down.md", Reads: []Read{{"ModelChainDown", "Maximum"}}, Period: 60, Periods: 2, Above: 1, Reached: true, Part: true,
			Text: "No model of a cascade can be asked, as the breakers of all of them are open. It is a part of ChainDown."},
		{Name: "CallsUnusual", Runbook: "high-throttling.md", Reads: []Read{{"APICallCount", "Sum"}}, Period: 300, Periods: 3, Band: "both",
			Text: "Many more or far fewer requests go to the upstream than is usual at this time of the day and the week. CloudWatch learns what is usual from up to two weeks."},
		{Name: "LatencyUnusual", Runbook: "upstream-failing.md", Reads: []Read{{"APICallLatency", "p90"}}, Period: 300, Periods: 3, Band: "upper",
			Text: "The upstream takes longer to answer than is usual at this time of the day and the week. CloudWatch learns what is usual from up to two weeks."},
	}
}

// A Composite is an alarm made of others.
type Composite struct{ Name, Text, Runbook, Rule string }

// composites are all of them.
func composites() []Composite {
	return []Composite{
		{"ModelUnhealthy", "Calls fail and answers are slow at once: the model is not well, and no other one may have been asked. weir status shows which tier is asked.", "upstream-failing.md",
			`ALARM("${ErrorRate}") AND ALARM("${CallLatency}")`},
		{"ModelDegraded", "More than a tenth of the answers come from below the first tier: users get worse or older answers. weir status shows which tier is not asked, and why.", "degraded.md",
			`ALARM("${FallbackShare}") AND NOT ALARM("${NoModel}")`},
		{"ChainDown", "No model of a cascade can be asked, and answers are degraded or fail: users get what was written beforehand, or errors.", "chain-down.md",
			`ALARM("${NoModel}") AND (ALARM("${FallbackShare}") OR ALARM("${ErrorRate}"))`},
	}
}

// A Question is a query of Logs Insights over weir's log.
type Question struct{ Name, Query string }

// Questions are all of them. The id of the first is put in before it is run.
func Questions() []Question {
	return []Question{
		{"weir/by correlation id", "fields @timestamp, msg, upstream, operation, reason, limit, key, attempt, class, code, after, error\n| filter id = \"PUT THE ID HERE\"\n| sort @timestamp asc\n| limit 1000"},
		{"weir/refused, by upstream, limit and reason", "filter msg = \"refused\"\n| stats count(*) + sum(coalesce(suppressed, 0)) as calls by upstream, limit, reason\n| sort calls desc"},
		{"weir/throttled by upstreams, by code", "filter msg = \"throttled\"\n| stats count(*) + sum(coalesce(suppressed, 0)) as throttles by upstream, operation, code, bin(5m)\n| sort throttles desc"},
		{"weir/given up, the latest", "fields @timestamp, upstream, operation, reason, attempts, class, code, error, id\n| filter msg = \"gave up\"\n| sort @timestamp desc\n| limit 200"},
		{"weir/breakers, pauses and the store", "fields @timestamp, msg, upstream, from, cause, after, by, error\n| filter msg like /^(breaker|paused|resumed|fallback)/\n| sort @timestamp desc\n| limit 200"},
	}
}

// A Graph is a widget of a dashboard of CloudWatch's.
type Graph struct {
	Title string
	Unit  string // on the axis
	Lines []Read
	Math  string // an expression of the lines a, b, ... in place of them
	Stack bool
	Whole bool // of all upstreams together always
}

// A Watchboard is a dashboard of CloudWatch's.
type Watchboard struct {
	Resource string
	Name     string // behind the name of the stack
	Alarms   []string
	Graphs   []Graph
}

// watchboards are all of them.
func watchboards() []Watchboard {
	return []Watchboard{
		{"Overview", "weir overview", []string{"RateLimitErrors", "RetryExhausted", "AcquisitionFailures", "AcquisitionWait", "Violation", "StoreLatency", "FallbackActivated", "StoreThrottled", "DeadLetters"}, []Graph{
			{Title: "Requests to the upstream", Unit: "requests", Lines: []Read{{"APICallCount", "Sum"}, {"RateLimitErrors", "Sum"}, {"RetryAttempts", "Sum"}}},
			{Title: "What weir decided", Unit: "attempts", Lines: []Read{{"RateLimiterAcquisitions", "Sum"}, {"RateLimiterAcquisitionFailures", "Sum"}}, Stack: true},
			{Title: "Calls given up", Unit: "calls", Lines: []Read{{"RetryExhausted", "Sum"}}},
			{Title: "Wait for a turn", Unit: "ms", Lines: []Read{{"RateLimiterAcquisitionWait", "p50"}, {"RateLimiterAcquisitionWait", "p99"}}},
			{Title: "Time of an attempt", Unit: "ms", Lines: []Read{{"APICallLatency", "p50"}, {"APICallLatency", "p99"}}},
			{Title: "The store", Unit: "times", Lines: []Read{{"RateLimiterFallbackActivated", "Maximum"}, {"RateLimiterStoreThrottled", "Sum"}, {"RateLimiterStoreRetries", "Sum"}, {"RateLimiterStoreConditions", "Sum"}}, Whole: true},
			{Title: "Time of the store", Unit: "ms", Lines: []Read{{"RateLimiterAcquisitionLatency", "p50"}, {"RateLimiterAcquisitionLatency", "p99"}}, Whole: true},
			{Title: "Dead letters", Unit: "deliveries", Lines: []Read{{"DeadLetters", "Maximum"}}},
			{Title: "Age of the oldest dead letter", Unit: "s", Lines: []Read{{"DeadLetterAge", "Maximum"}}},
		}},
		{"FMHealth", "FM Health Overview", []string{"ModelUnhealthy", "ModelDegraded", "ChainDown", "ErrorRate", "CallLatency", "FallbackShare", "NoModel"}, []Graph{
			{Title: "Answers, and those from below the first tier", Unit: "answers", Lines: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}},
			{Title: "Degraded answers", Unit: "percent", Lines: []Read{{"ModelAnswers", "Sum"}, {"ModelFallbacks", "Sum"}}, Math: "IF(FILL(a, 0) > 0, 100 * FILL(b, 0) / a, 0)"},
			{Title: "Tokens", Unit: "tokens", Lines: []Read{{"ModelInputTokens", "Sum"}, {"ModelOutputTokens", "Sum"}}},
			{Title: "What models cost", Unit: "by the price table", Lines: []Read{{"ModelCost", "Sum"}}},
			{Title: "Answers that were kept", Unit: "answers", Lines: []Read{{"ModelCacheHits", "Sum"}, {"ModelCacheMisses", "Sum"}}},
			{Title: "No model can be asked", Unit: "1 if so", Lines: []Read{{"ModelChainDown", "Maximum"}}},
			{Title: "Calls given up", Unit: "percent of attempts", Lines: []Read{{"APICallCount", "Sum"}, {"RetryExhausted", "Sum"}}, Math: "IF(FILL(a, 0) > 0, 100 * FILL(b, 0) / a, 0)"},
			{Title: "Time of an attempt", Unit: "ms", Lines: []Read{{"APICallLatency", "p50"}, {"APICallLatency", "p90"}, {"APICallLatency", "p99"}}},
			{Title: "Throttled by models' APIs", Unit: "attempts", Lines: []Read{{"RateLimitErrors", "Sum"}}},
		}},
	}
}
