package rules

// deliveriesMetrics are about calls that are made later.
var deliveriesMetrics = []Metric{
	{"weir_deliveries", Gauge, []string{"upstream", "status"},
		"deliveries that are `created`, `queued`, `processing`, `completed` or `failed`; the last are dead letters. See docs/deliveries.md"},
	{"weir_dead_letter_oldest_seconds", Gauge, []string{"upstream"},
		"age of the oldest dead letter"},
	{"weir_delivery_attempts_total", Counter, []string{"upstream", "class"},
		"attempts at deliveries that were recorded"},
	{"weir_delivery_died_total", Counter, []string{"upstream", "reason"},
		"deliveries that became dead letters: `rejected`, `attempts`, `expired`, `dropped`, `upstream_gone`, `ended_worker`, `unavailable`, `unknown`"},
	{"weir_delivery_refused_total", Counter, []string{"upstream", "why"},
		"requests that were not stored: `credential`, `condition`, `request` (something about it is wrong), `token` (it would outlive its caller's), `operation`, `dialect`, `body_too_large`, `body` (it broke off), `memory` (no room for it), `key_reused`, `full`, `uncertain` (nobody knows whether it is stored), `queue` (which does not answer)"},
	{"weir_delivery_claims_lost_total", Counter, nil,
		"attempts whose claim was lost before they ended: the delivery may be sent twice"},
	{"weir_delivery_accept_seconds", Histogram, nil,
		"how long it took to store a request"},
	{"weir_deliveries_log_bytes", Gauge, nil,
		"size of the write-ahead log beside the deliveries' file; it grows while somebody holds the file open for reading"},
}
