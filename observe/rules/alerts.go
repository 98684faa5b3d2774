package rules

import (
	"fmt"
	"strings"
	"time"
)

// Severities: how soon a person must react.
const (
	page   = "page"   // immediately
	ticket = "ticket" // on the next working day
)

// An Alert is a condition that notifies a person.
type Alert struct {
	Name     string
	Expr     string        // in the PromQL of Prometheus 2.42
	For      time.Duration // how long the condition must hold before the alert fires
	Keep     time.Duration // how long the alert keeps firing after the condition ended, for intermittent conditions
	Severity string
	Page     string // its page under docs/runbooks, if another alert has the same; "" for its own
	Summary  string // one line, with Prometheus templates
	Text     string // its meaning for users, and where to look first
}

// Runbook returns the name of the alert's page under docs/runbooks.
func (a *Alert) Runbook() string {
	if a.Page != "" {
		return a.Page
	}
	var b strings.Builder
	for i, r := range strings.TrimPrefix(a.Name, "Weir") {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('-')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String() + ".md"
}

// budget is the share of calls that may fail. Burn rates are multiples of it.
const budget = 0.01

var windows = []string{"5m", "30m", "1h", "6h"}

// A Record is a recording rule.
type Record struct{ Name, Expr string }

// Records returns the recording rules that alerts read.
//
// A bad call failed, was throttled, or got no permit because the breaker was open or the bound of attempts in flight
// was reached.
// A call that a limit refused is not bad: other metrics show whose limit that is. Refusals are counted by attempt,
// and calls
// without an attempt by call. The smaller number of the two counts, written as (a + b - |a - b|) / 2.
func Records() []Record {
	all := []Record{{"weir:breakers_not_closed:sum", `sum by (job, upstream) (weir_breakers{state!="closed"})`}}
	for _, w := range windows {
		refused := `sum by (job, upstream) (increase(weir_calls_total{result="refused"}[` + w + `]))`
		shut := `sum by (job, upstream) (increase(weir_decisions_total{decision=~"circuit_open|concurrency_limited"}[` + w + `]))`
		all = append(all,
			Record{"weir:calls:increase" + w, `sum by (job, upstream) (increase(weir_calls_total{result!~"canceled|unsent"}[` + w + `]))`},
			Record{"weir:calls_bad:increase" + w, `sum by (job, upstream) (increase(weir_calls_total{result=~"failed|throttled|unknown"}[` + w + `])) + (` + refused + " + " + shut + " - abs(" + refused + " - " + shut + ")) / 2"},
		)
	}
	return all
}

// bad is the share of bad calls in a window.
func bad(w string) string { return "weir:calls_bad:increase" + w + " / weir:calls:increase" + w }

// burns is the condition that the budget burns at least times too fast in both windows.
func burns(times float64, long, short string, most int) string {
	return fmt.Sprintf("%s > %.4g and %s > %.4g and weir:calls_bad:increase%s > %d", bad(long), times*budget, bad(short), times*budget, long, most)
}

// share is the condition that the series of one kind have at least a share of a counter's increase, if that is more
// than 20.
func share(metric, kind, w, of string) string { return shareOf(metric+"{"+kind+"}", metric, w, of) }

// shareOf is share for the series that a selector selects.
func shareOf(some, all, w, of string) string {
	grown := func(series string) string { return "sum by (job, upstream) (increase(" + series + "[" + w + "]))" }
	return grown(some) + " / " + grown(all) + " > " + of + " and " + grown(all) + " > 20"
}

// Alerts returns all alerts. Alerts about an upstream have its name in the label upstream.
func Alerts(o Options) []Alert {
	o = o.withDefaults()
	all := append(upstreamAlerts(), socketAlerts()...)
	all = append(all, sharedAlerts()...)
	all = append(all, modelAlerts(o)...)
	return append(all, processAlerts(o)...)
}

func upstreamAlerts() []Alert {
	return []Alert{
		{Name: "WeirUpstreamFailing", For: 2 * time.Minute, Severity: page,
			Expr:    bad("5m") + " > 0.5 and weir:calls_bad:increase5m > 20",
			Summary: "More than half of the calls to {{ $labels.upstream }} fail",
			Text:    "{{ $value | humanizePercentage }} of the calls of the last five minutes failed."},
		{Name: "WeirBurnFast", Severity: page,
			Expr:    burns(14.4, "1h", "5m", 10),
			Summary: "Calls to {{ $labels.upstream }} fail more than 14 times as often as the error budget allows",
			Text:    "{{ $value | humanizePercentage }} of the calls of the last hour failed, and calls still fail. At this rate a month's error budget lasts two days."},
		{Name: "WeirBurnSlow", Severity: ticket,
			Expr:    burns(6, "6h", "30m", 20),
			Summary: "Calls to {{ $labels.upstream }} fail more than 6 times as often as the error budget allows",
			Text:    "{{ $value | humanizePercentage }} of the calls of the last six hours failed, and calls still fail. At this rate a month's error budget lasts five days."},
		{Name: "WeirFailingQuietly", Severity: ticket,
			Expr:    bad("6h") + " > 0.5 and weir:calls_bad:increase6h > 2.5 and weir:calls:increase6h < 200",
			Summary: "Most of the few calls to {{ $labels.upstream }} fail",
			Text:    "{{ $labels.upstream }} gets few calls, and {{ $value | humanizePercentage }} of them failed in the last six hours."},
		{Name: "WeirBreakerOpen", For: 5 * time.Minute, Keep: 5 * time.Minute, Severity: page,
			Expr:    "min_over_time(weir:breakers_not_closed:sum[1m]) > 0",
			Summary: "The breaker of {{ $labels.upstream }} has been open for five minutes",
			Text:    "weir refuses calls to {{ $labels.upstream }} immediately, except probes. No probe has succeeded."},
		{Name: "WeirHighThrottling", For: 5 * time.Minute, Severity: ticket,
			Expr:    share("weir_decisions_total", `decision=~"rate_limited|quota_exhausted|concurrency_limited"`, "5m", "0.1"),
			Summary: "More than 10% of the requests to {{ $labels.upstream }} are refused by limits",
			Text:    "weir's limits refused {{ $value | humanizePercentage }} of the requests: callers send more than the limits allow."},
		{Name: "WeirViolation", Severity: ticket,
			Expr:    "sum by (job, upstream) (increase(weir_violations_total[5m])) > 0",
			Summary: "{{ $labels.upstream }} throttles calls that weir's limits allowed",
			Text:    "The configured limits differ from the limits of {{ $labels.upstream }}, or another program uses the same limits."},
		{Name: "WeirBudgetEmpty", For: 5 * time.Minute, Severity: ticket,
			Expr:    `sum by (job, upstream) (increase(weir_calls_given_up_total{reason="budget"}[5m])) > 10`,
			Summary: "The retry budget of {{ $labels.upstream }} is used up",
			Text:    "{{ $value | humanize }} calls in five minutes failed without a retry. So many calls fail that more retries would overload the upstream."},
		{Name: "WeirWaitingLong", For: 10 * time.Minute, Severity: ticket,
			Expr: "histogram_quantile(0.99, sum by (job, upstream, le) (rate(weir_wait_seconds_bucket[5m]))) > on (job, upstream) 0.5 * max by (job, upstream) (weir_wait_max_seconds)" +
				" and on (job, upstream) sum by (job, upstream) (increase(weir_wait_seconds_count[5m])) > 20",
			Summary: "Calls to {{ $labels.upstream }} wait {{ $value | humanizeDuration }} for their turn",
			Text:    "Of the calls that wait, 1% wait longer than half of max_wait. Calls that would wait longer than max_wait are refused."},
		{Name: "WeirQuotaLow", For: 5 * time.Minute, Severity: ticket,
			Expr: "max by (job, upstream, limit) (weir_quota_used_ratio) > 0.8 unless on (job, upstream, limit) max by (job, upstream, limit) (weir_budget_dollars) and on (job, upstream, limit) max by (job, upstream, limit) (weir_quota_used_ratio) + " +
				"max by (job, upstream, limit) (deriv(weir_quota_used_ratio[1h])) * (max by (job, upstream, limit) (weir_quota_resets_timestamp_seconds) - time()) > 0.99",
			Summary: "The quota {{ $labels.limit }} of {{ $labels.upstream }} will run out early",
			Text:    "{{ $value | humanizePercentage }} of the quota is used. At the rate of the last hour it runs out before its window ends. All calls are then refused."},
	}
}

func socketAlerts() []Alert {
	const messages, connects = `direction="to_upstream",route!="connect"`, `direction="to_upstream",route="connect"`
	return []Alert{
		{Name: "WeirMessagesRefused", For: 5 * time.Minute, Severity: ticket,
			Expr:    shareOf("weir_ws_messages_total{"+messages+`,decision="refused"}`, "weir_ws_messages_total{"+messages+"}", "5m", "0.1"),
			Summary: "More than 10% of the messages to {{ $labels.upstream }} are refused",
			Text:    "{{ $value | humanizePercentage }} of the callers' WebSocket messages exceed a limit. Each gets an error, and the connection stays open."},
		{Name: "WeirConnectionsRefused", For: 5 * time.Minute, Severity: ticket,
			Expr:    shareOf("weir_ws_messages_total{"+connects+`,decision="refused"}`, "weir_ws_messages_total{"+connects+"}", "5m", "0.1"),
			Summary: "More than 10% of new WebSockets to {{ $labels.upstream }} are refused",
			Text:    "{{ $value | humanizePercentage }} of the requests for a connection get 429, because connections or connections_by allow no more."},
		{Name: "WeirConnectionsFull", For: 5 * time.Minute, Severity: ticket,
			Expr:    "max by (job, upstream) (weir_ws_connections / weir_ws_connections_max) > 0.9",
			Summary: "The bound on open WebSockets to {{ $labels.upstream }} is almost reached",
			Text:    "A process has {{ $value | humanizePercentage }} of its maximum connections. At 100%, new connections get 429."},
		{Name: "WeirConnectionsLost", For: 5 * time.Minute, Severity: page,
			Expr:    shareOf(`weir_ws_closed_total{code="1013"}`, "weir_ws_closed_total", "5m", "0.5"),
			Summary: "{{ $labels.upstream }} drops its WebSockets",
			Text:    "{{ $value | humanizePercentage }} of the ended connections ended because the upstream disconnected or weir could not continue. The breaker does not count them, because they began successfully."},
	}
}

func sharedAlerts() []Alert {
	return []Alert{
		{Name: "WeirFallback", Severity: ticket,
			Expr:    "max by (job) (max_over_time(weir_fallback_active[2m])) > 0",
			Summary: "weir runs without its store",
			Text:    "Each process that cannot reach the store uses its part of each limit. Calls continue; a busy process may refuse more of them."},
		{Name: "WeirStoreAway", For: time.Minute, Severity: page,
			Expr:    "max by (job) (min_over_time(weir_fallback_active[4m])) > 0 or max by (job) (1 - weir_store_reached) > 0",
			Summary: "The store has been unreachable for five minutes, or was never reached",
			Text:    "Limits are no longer shared. By default, a process that has never reached the store refuses calls."},
		{Name: "WeirStoreCold", For: time.Minute, Severity: page,
			Expr:    "max by (job, upstream) (weir_store_cold) > 0",
			Summary: "The store has no usage records of the limits of {{ $labels.upstream }}",
			Text:    "The store is new or lost its data. Quotas count as used up until their window ends, rolling limits for one window."},
		{Name: "WeirPartReserved", For: 2 * time.Minute, Severity: ticket,
			Expr:    "max by (job, upstream) (weir_fleet_unresponsive_part - weir_fleet_unknown_part) > 0.1",
			Summary: "Part of each limit of {{ $labels.upstream }} is reserved for processes that stopped responding",
			Text:    "{{ $value | humanizePercentage }} of the limits has not been available for two minutes: processes are repeatedly killed, or cannot reach the store."},
		{Name: "WeirDeliveriesWaiting", For: 5 * time.Minute, Severity: ticket,
			Expr:    "max by (job, upstream) (weir_delivery_waiting_oldest_seconds) > 3600",
			Summary: "Deliveries to {{ $labels.upstream }} wait for more than an hour",
			Text:    "The oldest was accepted {{ $value | humanizeDuration }} ago. The upstream fails or is paused, or weir accepts more deliveries than its limits allow."},
		{Name: "WeirDeadLetters", Severity: ticket,
			Expr:    `sum by (job, upstream) (increase(weir_delivery_dead_letters_total{reason!="dropped"}[15m])) > 0`,
			Summary: "Deliveries to {{ $labels.upstream }} became dead letters",
			Text:    "{{ $value | humanize }} accepted requests will not be delivered unless an operator redrives them."},
	}
}

func modelAlerts(o Options) []Alert {
	all := []Alert{
		{Name: "WeirDegraded", For: 10 * time.Minute, Severity: ticket,
			Expr:    share("weir_llm_answers_total", `degraded="true"`, "5m", "0.1"),
			Summary: "More than 10% of the answers of {{ $labels.upstream }} are degraded",
			Text:    "{{ $value | humanizePercentage }} of the answers came from a tier below the first."},
		{Name: "WeirSpendingHigh", For: 2 * time.Minute, Severity: ticket,
			Expr:    "max by (job, upstream, limit) (weir_budget_spent_dollars / weir_budget_dollars) > 0.8",
			Summary: "The budget {{ $labels.limit }} of {{ $labels.upstream }} is almost spent",
			Text:    "The key that spent most has spent {{ $value | humanizePercentage }} of the budget of this window."},
		{Name: "WeirSpendingStopped", Severity: ticket, Page: "spending-high.md",
			Expr: "max by (job, upstream, limit) (weir_budget_spent_dollars / weir_budget_dollars) >= 1 or sum by (job, upstream, limit) (increase(weir_decisions_total{decision=\"quota_exhausted\"}[5m])) > 0" +
				" and on (job, upstream, limit) max by (job, upstream, limit) (weir_budget_dollars)",
			Summary: "The budget {{ $labels.limit }} of {{ $labels.upstream }} is spent",
			Text:    "weir refuses calls that are charged to it until its window ends."},
		{Name: "WeirChainDown", For: time.Minute, Severity: page,
			Expr:    "min by (job, instance, upstream) (weir_llm_tier_open) > 0",
			Summary: "No model of {{ $labels.upstream }} can be called",
			Text:    "The breakers of all models of the cascade are open. Callers get cached or static answers, or errors."},
	}
	if o.Cost > 0 {
		all = append(all, Alert{Name: "WeirCostHigh", Severity: ticket,
			Expr:    fmt.Sprintf("sum by (job) (increase(weir_llm_spent_total[1h])) > %g", o.Cost),
			Summary: "Models cost {{ $value | humanize }} in the last hour",
			Text:    fmt.Sprintf("The configured threshold is %g per hour. Callers are not affected.", o.Cost)})
	}
	return all
}

func processAlerts(o Options) []Alert {
	return []Alert{
		{Name: "WeirDown", For: 2 * time.Minute, Severity: page,
			Expr:    fmt.Sprintf("up{job=%q} == 0 or absent(up{job=%q})", o.Job, o.Job),
			Summary: "weir does not respond",
			Text:    "Prometheus cannot scrape {{ $labels.instance }}. Calls through it may fail."},
		{Name: "WeirReloadFailed", For: 5 * time.Minute, Severity: ticket,
			Expr:    "weir_config_reload_successful == 0",
			Summary: "{{ $labels.instance }} could not reload its configuration",
			Text:    "The file has a mistake, and the old configuration stays in force. A restart would fail."},
		{Name: "WeirTrouble", For: 2 * time.Minute, Severity: page,
			Expr:    `max by (job, upstream) (weir_problems{upstream!=""}) > 0`,
			Summary: "weir cannot call {{ $labels.upstream }} as configured",
			Text:    "Credentials are missing or were refused, and calls to {{ $labels.upstream }} fail. For (deliveries), the deliveries' file cannot be opened: weir refuses new deliveries, and direct calls continue."},
		{Name: "WeirCertificateEnds", For: 5 * time.Minute, Severity: ticket,
			Expr: "weir_certificate_not_after_timestamp_seconds - time() < 0.1 * (weir_certificate_not_after_timestamp_seconds - weir_certificate_not_before_timestamp_seconds)",

			Summary: "The certificate of {{ $labels.instance }} expires in {{ $value | humanizeDuration }}",
			Text:    "90% of its lifetime is over, and it was not renewed. TLS connections fail when it expires."},
	}
}

// followed maps alerts about an upstream to the alerts that they imply, which Alertmanager suppresses.
func followed() map[string][]string {
	return map[string][]string{
		"WeirBreakerOpen":        {"WeirUpstreamFailing", "WeirBurnFast", "WeirBurnSlow", "WeirFailingQuietly", "WeirHighThrottling", "WeirBudgetEmpty", "WeirDegraded", "WeirMessagesRefused", "WeirConnectionsLost"},
		"WeirUpstreamFailing":    {"WeirBurnFast", "WeirBurnSlow", "WeirBudgetEmpty", "WeirConnectionsLost"},
		"WeirMessagesRefused":    {"WeirHighThrottling"}, // messages are decisions as well
		"WeirConnectionsRefused": {"WeirConnectionsFull"},
		"WeirTrouble":            {"WeirUpstreamFailing", "WeirBurnFast", "WeirBurnSlow", "WeirFailingQuietly", "WeirBreakerOpen"},
		"WeirStoreAway":          {"WeirFallback"},
		"WeirSpendingStopped":    {"WeirSpendingHigh"},
	}
}
