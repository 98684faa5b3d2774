package metric

// A Rename maps a metric to the name and label that it had before. Package prometheus serves the old names on request until
// 0.2.0.
type Rename struct {
	Name, OldName   string
	Label, OldLabel string // "" if no label was renamed
}

// Renames returns the metrics whose name or label has changed since 0.1.0.
func Renames() []Rename { return renames }

var renames = []Rename{
	{"weir_buffer_bytes", "weir_buffer_bytes", "kind", "of"},
	{"weir_buffer_max_bytes", "weir_buffer_max_bytes", "kind", "of"},
	{"weir_buffer_refused_total", "weir_buffer_refused_total", "kind", "of"},
	{"weir_calls_given_up_total", "weir_given_up_calls_total", "", ""},
	{"weir_delivery_attempts_interrupted_total", "weir_delivery_attempts_left_total", "", ""},
	{"weir_delivery_callbacks_pending", "weir_delivery_callbacks_owed", "", ""},
	{"weir_delivery_dead_letters_total", "weir_delivery_died_total", "", ""},
	{"weir_fleet_unresponsive_part", "weir_fleet_silent_part", "", ""},
	{"weir_in_flight_abandoned", "weir_in_flight_held", "", ""},
	{"weir_limit_key_units_remaining", "weir_limit_key_units_left", "", ""},
	{"weir_limit_reserved_units", "weir_limit_held_back_units", "", ""},
	{"weir_limit_units_remaining", "weir_limit_units_left", "", ""},
	{"weir_listener_in_use", "weir_listener_in_use", "resource", "of"},
	{"weir_listener_max", "weir_listener_max", "resource", "of"},
	{"weir_listener_refused_total", "weir_turned_away_total", "reason", "why"},
	{"weir_pause_remaining_seconds", "weir_pause_left_seconds", "", ""},
	{"weir_pauses_active", "weir_pauses_in_force", "", ""},
	{"weir_pauses_ended_total", "weir_pauses_lifted_total", "", ""},
	{"weir_problems", "weir_troubles", "", ""},
	{"weir_retries_suppressed_total", "weir_retries_held_back_total", "", ""},
	{"weir_retry_budget_remaining", "weir_retries_left", "", ""},
	{"weir_traces_dropped_total", "weir_traces_dropped_total", "reason", "why"},
	{"weir_traces_total", "weir_traces_total", "reason", "why"},
	{"weir_why_records_total", "weir_stories_total", "", ""},
}
