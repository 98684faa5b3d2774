package rules

// processMetrics are about weir serve as such.
var processMetrics = []Metric{
	{"weir_turned_away_total", Counter, []string{"listener", "why"},
		"requests that a listener (`listen`, `admin`, `decide`) did not let in; see docs/security.md"},
	{"weir_listener_in_use", Gauge, []string{"listener", "of"},
		"what callers have at once at a listener: `connections`, `requests` in flight, `streams` (those of HTTP/2), and of the caller that has most `caller_connections` and `caller_requests`"},
	{"weir_listener_max", Gauge, []string{"listener", "of"},
		"how many there may be (`bounds`); `streams` is of one connection"},
	{"weir_buffer_bytes", Gauge, []string{"of"},
		"bytes that the process holds for its callers: `bodies` (with what caches and answers have), and `tables` that are made of them while they are read"},
	{"weir_buffer_max_bytes", Gauge, []string{"of"},
		"bytes that it may hold; see docs/security.md"},
	{"weir_buffer_refused_total", Counter, []string{"of"},
		"bodies for which there was no room in time"},
	{"weir_build_info", Gauge, []string{"version", "go"},
		"1, by what this weir is"},
	{"weir_config_reload_successful", Gauge, nil,
		"1 if the configuration in force is what the file said when it was read last, 0 if it had mistakes and changed nothing"},
	{"weir_config_reload_success_timestamp_seconds", Gauge, nil,
		"when the configuration in force was read"},
	{"weir_troubles", Gauge, []string{"upstream"},
		"what keeps weir from doing what its file says: missing credentials, a store that is away; `upstream` is empty for what concerns all. `weir status` says what each is"},
	{"weir_certificate_not_before_timestamp_seconds", Gauge, nil,
		"since when the certificate of the listener (`tls`) holds"},
	{"weir_certificate_not_after_timestamp_seconds", Gauge, nil,
		"until when it holds; it is read anew with a reload"},
}
