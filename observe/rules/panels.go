package rules

// A Panel shows one or several queries.
type Panel struct {
	Title string
	Kind  string // stat, timeseries, table or state-timeline
	Unit  string // in Grafana's terms: reqps, s, percentunit, short, bytes
	Text  string // how to read it
	Wide  bool   // full width; otherwise a third
	Stack bool
	Lines []Line
}

// A Line is a query, and the legend of its series.
type Line struct{ Expr, Legend string }

// A Row is a section of the dashboard.
type Row struct {
	Title  string
	Panels []Panel
}

// in selects the upstreams that are chosen at the top of the dashboard.
const in = `upstream=~"$upstream"`

func line(expr, legend string) []Line { return []Line{{expr, legend}} }

// Rows returns the sections, in the order in which an operator looks: is it weir or the upstream?
func Rows() []Row {
	return []Row{{"Overview", overview()}, {"Upstream", ofUpstream()}, {"Language models", ofModels()}, {"WebSockets", ofSockets()}, {"Fleet", ofFleet()}, {"Deliveries", ofDeliveries()}, {"weir itself", ofProcess()}}
}

func overview() []Panel {
	return []Panel{
		{Title: "Calls that succeed", Kind: "stat", Unit: "percentunit", Text: "Of ended calls, without calls whose callers disconnected.",
			Lines: line(`sum(rate(weir_calls_total{result="ok",`+in+`}[$__rate_interval])) / sum(rate(weir_calls_total{result!="canceled",`+in+`}[$__rate_interval]))`, "")},
		{Title: "Refused by weir", Kind: "stat", Unit: "reqps", Text: "By a limit, an open breaker or a pause. These calls did not reach the upstream.",
			Lines: line(`sum(rate(weir_decisions_total{decision!~"allowed|waited",`+in+`}[$__rate_interval]))`, "")},
		{Title: "Throttled by upstreams", Kind: "stat", Unit: "reqps", Text: "Attempts that upstreams throttled.",
			Lines: line(`sum(rate(weir_attempts_total{class="throttled",`+in+`}[$__rate_interval]))`, "")},
		{Title: "Breakers that are not closed", Kind: "stat", Unit: "short", Text: "Open or half-open.",
			Lines: line(`sum(weir_breakers{state!="closed",`+in+`})`, "")},
		{Title: "Wait, 99th percentile", Kind: "stat", Unit: "s", Text: "Of attempts that waited for their turn.",
			Lines: line(`histogram_quantile(0.99, sum by (le) (rate(weir_wait_seconds_bucket{`+in+`}[$__rate_interval])))`, "")},
		{Title: "Alerts", Kind: "stat", Unit: "short", Text: "Firing alerts of weir.",
			Lines: line(`count(ALERTS{alertname=~"Weir.*",alertstate="firing"}) or vector(0)`, "")},
		{Title: "Worst upstreams", Kind: "table", Unit: "reqps", Wide: true, Text: "The ten upstreams with the most unsuccessful calls per second.",
			Lines: line(`topk(10, sum by (upstream) (rate(weir_calls_total{result!~"ok|canceled",`+in+`}[$__rate_interval])))`, "{{upstream}}")},
	}
}

func ofUpstream() []Panel {
	return []Panel{
		{Title: "Breakers", Kind: "state-timeline", Unit: "short", Wide: true, Text: "The number of breakers of each upstream that are not closed.",
			Lines: line(`sum by (upstream) (weir_breakers{state!="closed",`+in+`})`, "{{upstream}}")},
		{Title: "Calls by result", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "A call includes all its attempts.",
			Lines: line(`sum by (result) (rate(weir_calls_total{`+in+`}[$__rate_interval]))`, "{{result}}")},
		{Title: "Attempts by class", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "Requests to the upstream.",
			Lines: line(`sum by (class) (rate(weir_attempts_total{`+in+`}[$__rate_interval]))`, "{{class}}")},
		{Title: "Decisions", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "Allowed immediately, allowed after a wait, or the reason of the refusal.",
			Lines: line(`sum by (decision) (rate(weir_decisions_total{`+in+`}[$__rate_interval]))`, "{{decision}}")},
		{Title: "Duration of calls", Kind: "timeseries", Unit: "s", Text: "Including retries and waits.",
			Lines: []Line{{`histogram_quantile(0.5, sum by (le) (rate(weir_call_duration_seconds_bucket{` + in + `}[$__rate_interval])))`, "p50"}, {`histogram_quantile(0.99, sum by (le) (rate(weir_call_duration_seconds_bucket{` + in + `}[$__rate_interval])))`, "p99"}}},
		{Title: "Duration of attempts", Kind: "timeseries", Unit: "s", Text: "The upstream's latency.",
			Lines: []Line{{`histogram_quantile(0.5, sum by (le) (rate(weir_attempt_duration_seconds_bucket{` + in + `}[$__rate_interval])))`, "p50"}, {`histogram_quantile(0.99, sum by (le) (rate(weir_attempt_duration_seconds_bucket{` + in + `}[$__rate_interval])))`, "p99"}}},
		{Title: "Wait for a turn", Kind: "timeseries", Unit: "s", Text: "The 99th percentile of attempts that wait, by limit.",
			Lines: line(`histogram_quantile(0.99, sum by (upstream, limit, le) (rate(weir_wait_seconds_bucket{`+in+`}[$__rate_interval])))`, "{{upstream}} {{limit}}")},
		{Title: "Remaining units of limits", Kind: "timeseries", Unit: "percentunit", Text: "For the key with the fewest.",
			Lines: line(`min by (upstream, limit) (weir_limit_units_remaining{`+in+`} / weir_limit_units_max{`+in+`})`, "{{upstream}} {{limit}}")},
		{Title: "Current rates", Kind: "timeseries", Unit: "percentunit", Text: "Relative to the configured rate. Below 1 if an adaptive rate or the upstream lowered it.",
			Lines: line(`min by (upstream, limit) (weir_limit_current_rate{`+in+`} / weir_limit_configured_rate{`+in+`})`, "{{upstream}} {{limit}}")},
		{Title: "Quotas used", Kind: "timeseries", Unit: "percentunit", Text: "For the key with the fewest remaining units.",
			Lines: line(`max by (upstream, limit) (weir_quota_used_ratio{`+in+`})`, "{{upstream}} {{limit}}")},
		{Title: "Budgets spent", Kind: "timeseries", Unit: "percentunit", Text: "Of limits in dollars, by the key that spent most.",
			Lines: line(`max by (upstream, limit) (weir_budget_spent_dollars{`+in+`} / weir_budget_dollars{`+in+`})`, "{{upstream}} {{limit}}")},
		{Title: "In flight", Kind: "timeseries", Unit: "short", Text: "With the bound, and calls that wait for a slot.",
			Lines: []Line{{`sum by (upstream) (weir_in_flight{` + in + `})`, "{{upstream}}"}, {`sum by (upstream) (weir_in_flight_bound{` + in + `})`, "{{upstream}} at most"}, {`sum by (upstream) (weir_in_flight_waiting{` + in + `})`, "{{upstream}} waiting"}}},
		{Title: "Retries", Kind: "timeseries", Unit: "reqps", Text: "With the retries that the budget allows now.",
			Lines: []Line{{`sum by (upstream) (rate(weir_retries_total{` + in + `}[$__rate_interval]))`, "{{upstream}}"}, {`min by (upstream) (weir_retry_budget_remaining{` + in + `})`, "{{upstream}} left"}}},
		{Title: "Violations", Kind: "timeseries", Unit: "short", Text: "Throttled attempts that the limits had allowed.",
			Lines: line(`sum by (upstream) (increase(weir_violations_total{`+in+`}[$__rate_interval]))`, "{{upstream}}")},
		{Title: "Pauses", Kind: "timeseries", Unit: "short", Text: "Current pauses, from hints or operators.",
			Lines: line(`max by (upstream) (weir_pauses_active{`+in+`})`, "{{upstream}}")},
	}
}

func ofModels() []Panel {
	return []Panel{
		{Title: "Answers by tier", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "Answers below the first tier are degraded.",
			Lines: line(`sum by (upstream, tier) (rate(weir_llm_answers_total{`+in+`}[$__rate_interval]))`, "{{upstream}} {{tier}}")},
		{Title: "Degraded answers", Kind: "timeseries", Unit: "reqps", Text: "The alert fires above 10%.",
			Lines: line(`sum by (upstream) (rate(weir_llm_answers_total{degraded="true",`+in+`}[$__rate_interval]))`, "{{upstream}}")},
		{Title: "Tiers that are not used", Kind: "state-timeline", Unit: "short", Text: "1 while the breaker of a tier is not closed.",
			Lines: line(`max by (upstream, tier) (weir_llm_tier_open{`+in+`})`, "{{upstream}} {{tier}}")},
		{Title: "First content", Kind: "timeseries", Unit: "s", Text: "The 90th percentile of the time until an answer began.",
			Lines: line(`histogram_quantile(0.9, sum by (upstream, tier, le) (rate(weir_llm_first_content_seconds_bucket{`+in+`}[$__rate_interval])))`, "{{upstream}} {{tier}}")},
		{Title: "Tokens", Kind: "timeseries", Unit: "short", Stack: true, Text: "Per second, by model and kind.",
			Lines: line(`sum by (model, kind) (rate(weir_llm_tokens_total{kind=~"input|output"}[$__rate_interval]))`, "{{model}} {{kind}}")},
		{Title: "Cost per hour", Kind: "timeseries", Unit: "short", Text: "In the currency of the price table.",
			Lines: line(`sum(increase(weir_llm_spent_total[1h]))`, "all models")},
		{Title: "Cache", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "Cache states of cacheable calls.",
			Lines: line(`sum by (state) (rate(weir_llm_cache_total{`+in+`}[$__rate_interval]))`, "{{state}}")},
	}
}

func ofSockets() []Panel {
	return []Panel{
		{Title: "Connections", Kind: "timeseries", Unit: "short", Text: "Open connections, and their bound.",
			Lines: []Line{{`sum by (upstream) (weir_ws_connections{` + in + `})`, "{{upstream}}"}, {`sum by (upstream) (weir_ws_connections_max{` + in + `})`, "{{upstream}} at most"}}},
		{Title: "Messages", Kind: "timeseries", Unit: "reqps", Text: "Forwarded messages in both directions.",
			Lines: line(`sum by (upstream, direction) (rate(weir_ws_messages_total{decision="allowed",route!="connect",`+in+`}[$__rate_interval]))`, "{{upstream}} {{direction}}")},
		{Title: "Messages refused", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "By route. The alert fires above 10% of callers' messages.",
			Lines: line(`sum by (upstream, route) (rate(weir_ws_messages_total{decision="refused",route!="connect",`+in+`}[$__rate_interval]))`, "{{upstream}} {{route}}")},
		{Title: "New connections", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "Accepted and refused connections.",
			Lines: line(`sum by (upstream, decision) (rate(weir_ws_messages_total{route="connect",`+in+`}[$__rate_interval]))`, "{{upstream}} {{decision}}")},
		{Title: "Connections closed", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "By code. 1013: the upstream disconnected. 1008: the caller exceeded limits or does not read. 1006: no code.",
			Lines: line(`sum by (upstream, code) (rate(weir_ws_closed_total{`+in+`}[$__rate_interval]))`, "{{upstream}} {{code}}")},
	}
}

func ofFleet() []Panel {
	return []Panel{
		{Title: "Store unreachable", Kind: "state-timeline", Unit: "short", Text: "1 while a process runs without the store.",
			Lines: line(`max by (instance) (weir_fallback_active)`, "{{instance}}")},
		{Title: "Instances", Kind: "timeseries", Unit: "short", Text: "Processes that share the store.",
			Lines: line(`max(weir_fleet_instances)`, "instances")},
		{Title: "Parts", Kind: "timeseries", Unit: "percentunit", Text: "The part of each limit that a process may use without the store.",
			Lines: line(`max by (instance, upstream) (weir_fleet_part{`+in+`})`, "{{instance}} {{upstream}}")},
		{Title: "Calls to the store", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "By result.",
			Lines: line(`sum by (result) (rate(weir_store_calls_total{`+in+`}[$__rate_interval]))`, "{{result}}")},
		{Title: "Duration of store calls", Kind: "timeseries", Unit: "s", Text: "The 99th percentile.",
			Lines: line(`histogram_quantile(0.99, sum by (le) (rate(weir_store_call_duration_seconds_bucket{`+in+`}[$__rate_interval])))`, "p99")},
		{Title: "Leased and not spent", Kind: "timeseries", Unit: "short", Text: "Units.",
			Lines: line(`sum by (upstream) (weir_lease_units_held{`+in+`})`, "{{upstream}}")},
	}
}

func ofDeliveries() []Panel {
	return []Panel{
		{Title: "Deliveries", Kind: "timeseries", Unit: "short", Stack: true, Text: "By status. Failed deliveries are dead letters.",
			Lines: line(`sum by (status) (weir_deliveries{`+in+`})`, "{{status}}")},
		{Title: "Dead letters per hour", Kind: "timeseries", Unit: "short", Text: "By reason.",
			Lines: line(`sum by (upstream, reason) (increase(weir_delivery_dead_letters_total{`+in+`}[1h]))`, "{{upstream}} {{reason}}")},
		{Title: "Attempts at deliveries", Kind: "timeseries", Unit: "reqps", Stack: true, Text: "By outcome.",
			Lines: line(`sum by (class) (rate(weir_delivery_attempts_total{`+in+`}[$__rate_interval]))`, "{{class}}")},
		{Title: "Time to accept", Kind: "timeseries", Unit: "s", Text: "The 99th percentile of the time to store a request.",
			Lines: line(`histogram_quantile(0.99, sum by (le) (rate(weir_delivery_accept_seconds_bucket[$__rate_interval])))`, "p99")},
	}
}

func ofProcess() []Panel {
	return []Panel{
		{Title: "Versions", Kind: "table", Unit: "short", Text: "Running versions and their number of processes.",
			Lines: line(`count by (version, go) (weir_build_info)`, "{{version}}")},
		{Title: "Reload failed", Kind: "state-timeline", Unit: "short", Text: "1 while the file has a mistake and the old configuration is in force.",
			Lines: line(`max by (instance) (1 - weir_config_reload_successful)`, "{{instance}}")},
		{Title: "Troubles", Kind: "state-timeline", Unit: "short", Text: "Problems that prevent weir from working as configured. weir status explains them.",
			Lines: line(`max by (instance, upstream) (weir_problems)`, "{{instance}} {{upstream}}")},
		{Title: "Refused by listeners", Kind: "timeseries", Unit: "reqps", Text: "Requests that a listener refused.",
			Lines: line(`sum by (listener, reason) (rate(weir_listener_refused_total[$__rate_interval]))`, "{{listener}} {{reason}}")},
		{Title: "Memory for callers' data", Kind: "timeseries", Unit: "bytes", Text: "With its bound.",
			Lines: []Line{{`sum by (kind) (weir_buffer_bytes)`, "{{of}}"}, {`sum by (kind) (weir_buffer_max_bytes)`, "{{of}} at most"}}},
		{Title: "Memory", Kind: "timeseries", Unit: "bytes", Text: "Of the process.",
			Lines: line(`max by (instance) (process_resident_memory_bytes{job=~"$job"})`, "{{instance}}")},
	}
}
