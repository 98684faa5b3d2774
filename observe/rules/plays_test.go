package rules

import (
	"fmt"
	"maps"
	"time"
)

// A play is a list of samples, scraped every 15 s, and the alerts that must fire.
type play struct {
	series map[string]string          // replace series of rest
	fires  map[time.Duration][]string // "NAME UPSTREAM", at an instant
	about  string                     // the tested alert
}

func calls(result string) string {
	return `weir_calls_total{job="weir",instance="a",upstream="api",operation="default",result="` + result + `"}`
}

func decisions(decision string) string {
	return `weir_decisions_total{job="weir",instance="a",upstream="api",operation="default",limit="",decision="` + decision + `"}`
}

func breakers(state string) string {
	return `weir_breakers{job="weir",instance="a",upstream="api",state="` + state + `"}`
}

func of(metric, more string) string {
	return metric + `{job="weir",instance="a",` + more + `}`
}

// messages returns the series of messages from callers on a WebSocket route.
func messages(route, decision string) string {
	return `weir_ws_messages_total{job="weir",instance="a",upstream="api",route="` + route + `",direction="to_upstream",decision="` + decision + `"}`
}

func closed(code string) string {
	return `weir_ws_closed_total{job="weir",instance="a",upstream="api",code="` + code + `"}`
}

const (
	sockets    = `weir_ws_connections{job="weir",instance="a",upstream="api"}`
	socketsMax = `weir_ws_connections_max{job="weir",instance="a",upstream="api"}`
	violations = `weir_violations_total{job="weir",instance="a",upstream="api",operation="default",limit="put"}`
	died       = `weir_delivery_dead_letters_total{job="weir",instance="a",upstream="api",reason="rejected"}`
	dropped    = `weir_delivery_dead_letters_total{job="weir",instance="a",upstream="api",reason="dropped"}`
	used       = `weir_quota_used_ratio{job="weir",instance="a",upstream="api",limit="day"}`
	resets     = `weir_quota_resets_timestamp_seconds{job="weir",instance="a",upstream="api",limit="day"}`
	amount     = `weir_budget_dollars{job="weir",instance="a",upstream="api",limit="money"}`
	spent      = `weir_budget_spent_dollars{job="weir",instance="a",upstream="api",limit="money"}`
	tooDear    = `weir_decisions_total{job="weir",instance="a",upstream="api",operation="chat",limit="money",decision="quota_exhausted"}`
	spentAll   = `weir_llm_spent_total{job="weir",instance="a"}`
	away       = `weir_fallback_active{job="weir",instance="a"}`
	reached    = `weir_store_reached{job="weir",instance="a"}`
	gaveUp     = `weir_calls_given_up_total{job="weir",instance="a",upstream="api",operation="default",reason="budget"}`
	reloaded   = `weir_config_reload_successful{job="weir",instance="a"}`
	isUp       = `up{job="weir",instance="a"}`
)

// rest returns the series of a weir with every feature, without any event. It has everything that alerts read.
func rest() map[string]string {
	all := map[string]string{
		breakers("closed"): "1x2000", breakers("open"): "0x2000", breakers("half-open"): "0x2000",
		violations: "0x2000", died: "0x2000", dropped: "0x2000", used: "0.2x2000", resets: "86400x2000", amount: "25x2000", spent: "2x2000", tooDear: "0x2000", spentAll: "0x2000", away: "0x2000", reached: "1x2000", gaveUp: "0x2000", reloaded: "1x2000", isUp: "1x2000",
		of("weir_wait_max_seconds", `upstream="api"`): "10x2000", of("weir_problems", `upstream="api"`): "0x2000", of("weir_problems", `upstream=""`): "0x2000",
		of("weir_llm_tier_open", `upstream="api",tier="primary"`): "0x2000", of("weir_llm_tier_open", `upstream="api",tier="second"`): "0x2000",
		of("weir_llm_answers_total", `upstream="api",tier="primary",degraded="false"`): "0x2000", of("weir_llm_answers_total", `upstream="api",tier="second",degraded="true"`): "0x2000",
		`weir_certificate_not_before_timestamp_seconds{job="weir",instance="a"}`: "-7776000x2000", `weir_certificate_not_after_timestamp_seconds{job="weir",instance="a"}`: "7776000x2000",
	}
	for _, route := range []string{"connect", "default", "send"} {
		all[messages(route, "allowed")], all[messages(route, "refused")] = "0x2000", "0x2000"
	}
	for _, code := range []string{"1000", "1006", "1008", "1013"} {
		all[closed(code)] = "0x2000"
	}
	all[sockets], all[socketsMax] = "400x2000", "1000x2000"
	for _, r := range []string{"ok", "failed", "throttled", "unknown", "refused", "rejected", "canceled", "unsent"} {
		all[calls(r)] = "0x2000"
	}
	for _, d := range []string{"allowed", "rate_limited", "quota_exhausted", "concurrency_limited", "circuit_open", "paused"} {
		all[decisions(d)] = "0x2000"
	}
	maps.Copy(all, waits("0x2000", "0x2000", "0x2000"))
	return all
}

// waits returns the buckets up to 1 s, up to 10 s, and all.
func waits(second, ten, all string) map[string]string {
	w := `upstream="api",limit="put"`
	return map[string]string{
		of("weir_wait_seconds_bucket", w+`,le="1"`): second, of("weir_wait_seconds_bucket", w+`,le="10"`): ten, of("weir_wait_seconds_bucket", w+`,le="+Inf"`): all,
		of("weir_wait_seconds_count", w): all,
	}
}

// then returns a series: a start value, followed by pairs of a step per sample and a duration. A sample is 15 s.
func then(parts ...any) string {
	out, v := "", 0.0
	for i := 0; i < len(parts); i += 2 {
		step, n := parts[i].(float64), int(parts[i+1].(time.Duration)/(15*time.Second))
		out += fmt.Sprintf("%g+%gx%d ", v, step, n-1)
		v += step * float64(n)
	}
	return out
}

// still returns a number of samples of each value.
func still(parts ...any) string {
	out := ""
	for i := 0; i < len(parts); i += 2 {
		out += fmt.Sprintf("%gx%d ", parts[i].(float64), int(parts[i+1].(time.Duration)/(15*time.Second))-1)
	}
	return out
}

const (
	minute = time.Minute
	hour   = time.Hour
)

// plays are faults, each with the alerts that must fire, and when. No other alert may fire. 1,500 is 15 s of a hundred calls a
// second.
var plays = map[string]play{
	"everything fails": {about: "WeirUpstreamFailing",
		series: map[string]string{calls("ok"): then(1500.0, 2*hour, 0.0, hour), calls("failed"): then(0.0, 2*hour, 1500.0, hour)},
		fires: map[time.Duration][]string{
			2 * hour: nil, 2*hour + 2*minute: nil, 2*hour + 5*minute: {"WeirUpstreamFailing api"}, 2*hour + 12*minute: {"WeirBurnFast api", "WeirBurnSlow api", "WeirUpstreamFailing api"},
		}},
	"the breaker refuses everything": {about: "WeirUpstreamFailing",
		series: map[string]string{calls("ok"): then(1500.0, 2*hour, 0.0, hour), calls("refused"): then(0.0, 2*hour, 1500.0, hour), decisions("circuit_open"): then(0.0, 2*hour, 1500.0, hour), decisions("allowed"): then(1500.0, 2*hour, 0.0, hour)},
		fires:  map[time.Duration][]string{2 * hour: nil, 2*hour + 5*minute: {"WeirUpstreamFailing api"}}},
	"a burst of twenty failures": {about: "WeirUpstreamFailing",
		series: map[string]string{calls("ok"): "0+15x400", calls("failed"): "0x239 20x100"},
		fires:  map[time.Duration][]string{61 * minute: nil, 65 * minute: nil}},
	"a seventh fails": {about: "WeirBurnFast",
		series: map[string]string{calls("ok"): then(1500.0, 2*hour, 1275.0, 2*hour), calls("failed"): then(0.0, 2*hour, 225.0, 2*hour)},
		fires:  map[time.Duration][]string{2*hour + 45*minute: nil, 2*hour + 59*minute: {"WeirBurnFast api"}}},
	"one of sixty calls an hour fails": {about: "WeirBurnFast",
		series: map[string]string{calls("ok"): then(0.25, 3*hour), calls("failed"): then(0.0, 2*hour, 1.0, 15*time.Second, 0.0, hour)},
		fires:  map[time.Duration][]string{2*hour + 5*minute: nil, 2*hour + 50*minute: nil}},
	"a fourteenth fails": {about: "WeirBurnSlow",
		series: map[string]string{calls("ok"): then(1500.0, 20*minute, 1395.0, 4*hour), calls("failed"): then(0.0, 20*minute, 105.0, 4*hour)},
		fires:  map[time.Duration][]string{hour: nil, 2*hour + 30*minute: {"WeirBurnSlow api"}}},
	"four calls an hour fail": {about: "WeirFailingQuietly",
		series: map[string]string{calls("failed"): "0x59 1x59 2x59 3x59 4x59 5x200"},
		fires:  map[time.Duration][]string{40 * minute: nil, 62 * minute: {"WeirFailingQuietly api"}}},
	"one failure in a quiet night": {about: "WeirFailingQuietly",
		series: map[string]string{calls("failed"): "0x100 1x1400"},
		fires:  map[time.Duration][]string{30 * minute: nil, 2 * hour: nil}},
	"the breaker opens": {about: "WeirBreakerOpen",
		series: map[string]string{breakers("closed"): still(1.0, 10*minute, 0.0, 10*minute, 1.0, hour), breakers("open"): still(0.0, 10*minute, 1.0, 2*minute, 0.0, minute, 1.0, 7*minute, 0.0, hour),
			breakers("half-open"): still(0.0, 12*minute, 1.0, minute, 0.0, hour)},
		fires: map[time.Duration][]string{14 * minute: nil, 16*minute + 30*time.Second: {"WeirBreakerOpen api"}, 24 * minute: {"WeirBreakerOpen api"}, 26 * minute: nil}},
	"the breaker is open for three minutes": {about: "WeirBreakerOpen",
		series: map[string]string{breakers("closed"): still(1.0, 10*minute, 0.0, 3*minute, 1.0, hour), breakers("open"): still(0.0, 10*minute, 1.0, 3*minute, 0.0, hour)},
		fires:  map[time.Duration][]string{12 * minute: nil, 14 * minute: nil, 20 * minute: nil}},
	"a fifth is refused for a limit": {about: "WeirHighThrottling",
		series: map[string]string{decisions("allowed"): then(1500.0, hour, 1200.0, hour), decisions("rate_limited"): then(0.0, hour, 300.0, hour), calls("ok"): then(1500.0, hour, 1200.0, hour), calls("refused"): then(0.0, hour, 300.0, hour)},
		fires:  map[time.Duration][]string{hour + 5*minute: nil, hour + 9*minute: {"WeirHighThrottling api"}, hour + 55*minute: {"WeirHighThrottling api"}}},
	"a twentieth is refused for a limit": {about: "WeirHighThrottling",
		series: map[string]string{decisions("allowed"): then(1425.0, 2*hour), decisions("quota_exhausted"): then(75.0, 2*hour), calls("ok"): then(1425.0, 2*hour), calls("refused"): then(75.0, 2*hour)},
		fires:  map[time.Duration][]string{30 * minute: nil, hour: nil}},
	"one throttle that limits had allowed": {about: "WeirViolation",
		series: map[string]string{violations: "0x40 1x100"},
		fires:  map[time.Duration][]string{10 * minute: nil, 10*minute + 30*time.Second: {"WeirViolation api"}, 20 * minute: nil}},
	"retries are spent": {about: "WeirBudgetEmpty",
		series: map[string]string{gaveUp: then(0.0, 10*minute, 5.0, 20*minute)},
		fires:  map[time.Duration][]string{12 * minute: nil, 17 * minute: {"WeirBudgetEmpty api"}}},
	"ten calls find no retry": {about: "WeirBudgetEmpty",
		series: map[string]string{gaveUp: "0x40 10x400"},
		fires:  map[time.Duration][]string{12 * minute: nil, 17 * minute: nil}},
	"calls wait for seven seconds": {about: "WeirWaitingLong",
		series: waits("0x400", then(10.0, 90*minute), then(10.0, 90*minute)),
		fires:  map[time.Duration][]string{9 * minute: nil, 12 * minute: {"WeirWaitingLong api"}}},
	"calls wait for half a second": {about: "WeirWaitingLong",
		series: waits(then(10.0, 90*minute), then(10.0, 90*minute), then(10.0, 90*minute)),
		fires:  map[time.Duration][]string{12 * minute: nil, 30 * minute: nil}},
	"a quota is used up by noon": {about: "WeirQuotaLow",
		series: map[string]string{used: "0+0.002x480"},
		fires:  map[time.Duration][]string{hour + 38*minute: nil, hour + 47*minute: {"WeirQuotaLow api"}}},
	"a quota is nine tenths used, slowly, when its window ends": {about: "WeirQuotaLow",
		series: map[string]string{used: "0.9+0.000001x1200", resets: "18000x1200"},
		fires:  map[time.Duration][]string{hour: nil, 2 * hour: nil}},
	"a fifth of the messages is over a limit": {about: "WeirMessagesRefused",
		series: map[string]string{messages("send", "allowed"): then(80.0, 2*hour), messages("send", "refused"): "0x240 " + then(20.0, hour)},
		fires:  map[time.Duration][]string{hour: nil, hour + 4*minute: nil, hour + 15*minute: {"WeirMessagesRefused api"}}},
	"a twentieth of the messages is over a limit, and answers are many": {about: "WeirMessagesRefused",
		series: map[string]string{messages("send", "allowed"): then(95.0, 2*hour), messages("send", "refused"): then(5.0, 2*hour), messages("connect", "refused"): then(1.0, 2*hour), messages("connect", "allowed"): then(99.0, 2*hour)},
		fires:  map[time.Duration][]string{30 * minute: nil, hour: nil}},
	"two messages are over a limit in a quiet night": {about: "WeirMessagesRefused",
		series: map[string]string{messages("send", "refused"): "0x40 2x400"},
		fires:  map[time.Duration][]string{12 * minute: nil, 17 * minute: nil}},
	"there is no place for a third of the connections": {about: "WeirConnectionsRefused",
		series: map[string]string{messages("connect", "allowed"): then(4.0, 2*hour), messages("connect", "refused"): then(2.0, 2*hour)},
		fires:  map[time.Duration][]string{4 * minute: nil, 12 * minute: {"WeirConnectionsRefused api"}}},
	"there is no place for ten connections of a user": {about: "WeirConnectionsRefused",
		series: map[string]string{messages("connect", "allowed"): then(4.0, 2*hour), messages("connect", "refused"): "0x40 10x400"},
		fires:  map[time.Duration][]string{12 * minute: nil, 17 * minute: nil}},
	"nearly all connections are there": {about: "WeirConnectionsFull",
		series: map[string]string{sockets: still(400.0, 10*minute, 950.0, 30*minute, 400.0, hour)},
		fires:  map[time.Duration][]string{14 * minute: nil, 16 * minute: {"WeirConnectionsFull api"}, 45 * minute: nil}},
	"any number of connections may be there": {about: "WeirConnectionsFull",
		series: map[string]string{sockets: "90000x400", socketsMax: ""},
		fires:  map[time.Duration][]string{16 * minute: nil}},
	"the upstream drops its connections": {about: "WeirConnectionsLost",
		series: map[string]string{closed("1013"): then(0.0, 10*minute, 5.0, hour), closed("1000"): then(1.0, 2*hour)},
		fires:  map[time.Duration][]string{12 * minute: nil, 25 * minute: {"WeirConnectionsLost api"}}},
	"the upstream begins anew": {about: "WeirConnectionsLost",
		series: map[string]string{closed("1013"): "0x40 400x400", closed("1000"): then(1.0, 2*hour)},
		fires:  map[time.Duration][]string{11 * minute: nil, 14 * minute: nil, 17 * minute: nil}},
	"callers come and go": {about: "WeirConnectionsLost",
		series: map[string]string{closed("1013"): then(1.0, 2*hour), closed("1006"): then(4.0, 2*hour), closed("1000"): then(8.0, 2*hour)},
		fires:  map[time.Duration][]string{20 * minute: nil}},
	"the store is away for a moment": {about: "WeirFallback",
		series: map[string]string{away: still(0.0, 10*minute, 1.0, 15*time.Second, 0.0, hour)},
		fires:  map[time.Duration][]string{9 * minute: nil, 10*minute + 30*time.Second: {"WeirFallback "}, 13 * minute: nil}},
	"the store is away": {about: "WeirStoreAway",
		series: map[string]string{away: still(0.0, 10*minute, 1.0, hour)},
		fires:  map[time.Duration][]string{12 * minute: {"WeirFallback "}, 15*minute + 30*time.Second: {"WeirFallback ", "WeirStoreAway "}}},
	"the store was never reached": {about: "WeirStoreAway",
		series: map[string]string{reached: "0x400"},
		fires:  map[time.Duration][]string{30 * time.Second: nil, 2 * minute: {"WeirStoreAway "}}},
	"half of the limit is reserved": {about: "WeirPartReserved",
		series: map[string]string{of("weir_fleet_unresponsive_part", `upstream="api"`): still(0.0, 10*minute, 0.5, hour), of("weir_fleet_unknown_part", `upstream="api"`): "0x400"},
		fires:  map[time.Duration][]string{11 * minute: nil, 12*minute + 30*time.Second: {"WeirPartReserved api"}}},
	"the store was emptied": {about: "WeirPartReserved",
		series: map[string]string{of("weir_fleet_unresponsive_part", `upstream="api"`): "1x400", of("weir_fleet_unknown_part", `upstream="api"`): "1x400"},
		fires:  map[time.Duration][]string{20 * minute: nil}},
	"the store is cold for half a minute": {about: "WeirStoreCold",
		series: map[string]string{of("weir_store_cold", `upstream="api"`): still(0.0, 10*minute, 1.0, 30*time.Second, 0.0, hour)},
		fires:  map[time.Duration][]string{10*minute + 45*time.Second: nil, 12 * minute: nil}},
	"the store is cold until midnight": {about: "WeirStoreCold",
		series: map[string]string{of("weir_store_cold", `upstream="api"`): still(0.0, 10*minute, 1.0, hour)},
		fires:  map[time.Duration][]string{10*minute + 30*time.Second: nil, 11*minute + 30*time.Second: {"WeirStoreCold api"}}},
	"a delivery waits for two hours": {about: "WeirDeliveriesWaiting",
		series: map[string]string{of("weir_delivery_waiting_oldest_seconds", `upstream="api"`): still(60.0, 10*minute, 7200.0, hour)},
		fires:  map[time.Duration][]string{14 * minute: nil, 16 * minute: {"WeirDeliveriesWaiting api"}}},
	"deliveries wait for half an hour": {about: "WeirDeliveriesWaiting",
		series: map[string]string{of("weir_delivery_waiting_oldest_seconds", `upstream="api"`): still(1800.0, hour)},
		fires:  map[time.Duration][]string{30 * minute: nil}},
	"a delivery dies": {about: "WeirDeadLetters",
		series: map[string]string{died: "0x40 1x200"},
		fires:  map[time.Duration][]string{10 * minute: nil, 10*minute + 30*time.Second: {"WeirDeadLetters api"}, 30 * minute: nil}},
	"a delivery is dropped by hand": {about: "WeirDeadLetters",
		series: map[string]string{dropped: "0x40 1x200"},
		fires:  map[time.Duration][]string{11 * minute: nil}},
	"a fifth of the answers is degraded": {about: "WeirDegraded",
		series: map[string]string{of("weir_llm_answers_total", `upstream="api",tier="primary",degraded="false"`): "0+80x400", of("weir_llm_answers_total", `upstream="api",tier="second",degraded="true"`): "0+20x400"},
		fires:  map[time.Duration][]string{9 * minute: nil, 12 * minute: {"WeirDegraded api"}}},
	"a twentieth of the answers is degraded": {about: "WeirDegraded",
		series: map[string]string{of("weir_llm_answers_total", `upstream="api",tier="primary",degraded="false"`): "0+95x400", of("weir_llm_answers_total", `upstream="api",tier="second",degraded="true"`): "0+5x400"},
		fires:  map[time.Duration][]string{12 * minute: nil, 30 * minute: nil}},
	"no model can be asked": {about: "WeirChainDown",
		series: map[string]string{of("weir_llm_tier_open", `upstream="api",tier="primary"`): "0x40 1x100", of("weir_llm_tier_open", `upstream="api",tier="second"`): "0x48 1x100"},
		fires:  map[time.Duration][]string{12 * minute: nil, 13*minute + 30*time.Second: {"WeirChainDown api"}}},
	"four fifths of a budget are spent": {about: "WeirSpendingHigh",
		series: map[string]string{spent: still(20.0, hour, 20.5, hour)},
		fires:  map[time.Duration][]string{30 * minute: nil, hour + minute: nil, hour + 3*minute: {"WeirSpendingHigh api"}}},
	"a spent budget begins again": {about: "WeirSpendingStopped",
		series: map[string]string{spent: still(2.0, hour, 25.0, hour, 0.0, hour)},
		fires:  map[time.Duration][]string{30 * minute: nil, hour + minute: {"WeirSpendingStopped api"}, hour + 5*minute: {"WeirSpendingHigh api", "WeirSpendingStopped api"}, 2*hour + minute: nil}},
	"a call is refused because a budget has too little left": {about: "WeirSpendingStopped",
		series: map[string]string{spent: "18x2000", tooDear: "0x240 1x400"},
		fires:  map[time.Duration][]string{30 * minute: nil, hour + minute: {"WeirSpendingStopped api"}, hour + 10*minute: nil}},
	"a budget in dollars has its own alerts": {about: "WeirQuotaLow",
		series: map[string]string{of("weir_quota_used_ratio", `upstream="api",limit="money"`): "0+0.002x480", of("weir_quota_resets_timestamp_seconds", `upstream="api",limit="money"`): "86400x2000"},
		fires:  map[time.Duration][]string{hour + 47*minute: nil}},
	"models cost 60 in an hour": {about: "WeirCostHigh",
		series: map[string]string{spentAll: "0+0.25x480"},
		fires:  map[time.Duration][]string{40 * minute: nil, 59 * minute: {"WeirCostHigh "}}},
	"weir does not answer": {about: "WeirDown",
		series: map[string]string{isUp: "1x40 0x100"},
		fires:  map[time.Duration][]string{11 * minute: nil, 13 * minute: {"WeirDown "}}},
	"no weir is scraped": {about: "WeirDown",
		series: map[string]string{isUp: ""},
		fires:  map[time.Duration][]string{minute: nil, 3 * minute: {"WeirDown "}}},
	"a reload fails": {about: "WeirReloadFailed",
		series: map[string]string{reloaded: "1x40 0x100"},
		fires:  map[time.Duration][]string{14 * minute: nil, 16 * minute: {"WeirReloadFailed "}}},
	"a reload fails and is mended": {about: "WeirReloadFailed",
		series: map[string]string{reloaded: "1x40 0x12 1x100"},
		fires:  map[time.Duration][]string{16 * minute: nil}},
	"credentials are gone": {about: "WeirTrouble",
		series: map[string]string{of("weir_problems", `upstream="api"`): "0x40 1x100"},
		fires:  map[time.Duration][]string{11 * minute: nil, 13 * minute: {"WeirTrouble api"}}},
	"a certificate ends": {about: "WeirCertificateEnds",
		series: map[string]string{`weir_certificate_not_after_timestamp_seconds{job="weir",instance="a"}`: "800000x100"},
		fires:  map[time.Duration][]string{4 * minute: nil, 6 * minute: {"WeirCertificateEnds "}}},
}
