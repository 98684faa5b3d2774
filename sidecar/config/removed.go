package config

import (
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A removal describes fields that files should no longer have. Until 0.2.0 weir serve accepts them with a warning,
// and weir check refuses them. Presets and Go code may still set the fields that apply.
type removal struct {
	at      string // path of their mapping; * matches any name, and [] any item of a list
	names   string // names of the fields, separated by spaces
	to      string // the new name of the field, or ignored, or applies
	instead string // what to use instead
}

const (
	applies = ""  // the value still applies until 0.2.0
	ignored = "-" // the value has no effect
)

// removals are the fields that are removed or renamed.
var removals = []removal{
	{"", "admin_auth", applies, "remove it: on the admin listener, only metrics and health need no token"},
	{"", "admin_tokens", applies, "use tokens: {NAME: {env: VARIABLE, admin: true}}"},
	{"", "admin_client_ca admin_tls", applies, "use tokens: {NAME: {env: VARIABLE, admin: true}}, and keep admin on 127.0.0.1 or behind a proxy with TLS"},
	{"", "harmless", applies, "remove it: values of global, route, model, operation, region and plan are shown unchanged; other values are hashed if hash_env is set"},
	{"", "max_header", applies, "remove it: headers may have 64 KiB"},
	{"", "log_each_second", applies, "remove it: at most 10 equal lines are logged each second"},
	{"", "log_attempts", applies, "use log: attempts"},
	{"bounds", "caller_connections", applies, "remove it: one address may have half of bounds.connections"},
	{"bounds", "streams", applies, "remove it: a connection may have 250 streams, and a caller bounds.caller_requests"},
	{"store", "coast", ignored, "use store.outage, and store.without for the time after it"},
	{"store", "share", "without", ""},
	{"store", "guard timeout queue", applies, "remove it: the value depends on the kind of store and its measured latency"},
	{"store.dynamodb", "endpoint", applies, "set AWS_ENDPOINT_URL_DYNAMODB"},
	{"deliveries", "keep_dead", applies, "remove it: dead letters are kept for 720h"},
	{"deliveries.postgres", "connections", applies, "use ?pool_max_conns=N in the URL"},
	{"deliveries.aws", "endpoint", applies, "set AWS_ENDPOINT_URL_DYNAMODB and AWS_ENDPOINT_URL_SQS"},
	{"deliveries.requests", "region", applies, "remove it: the URL of the queue has the region"},
	{"deliveries.callbacks.*", "path", applies, "put the path into the url of the upstream"},
	{"deliveries.callbacks.*", "failed", applies, "remove it: a callback reports every result"},
	{"decide", "store_timeout max_wait max_permits", applies, "remove it: the default suits every file"},
	{"decide", "hosts", applies, "use hosts at the top level of the file"},
	{"decide", "client_ca", applies, "use tokens: {NAME: {env: VARIABLE, reports: own}}"},
	{"decide", "open", applies, "use tokens: {NAME: {env: VARIABLE, reports: own}}, or listen on 127.0.0.1"},
	{"decide", "tokens", applies, "use tokens: {NAME: {env: VARIABLE, upstreams: [...], keys: {...}, reports: own}}"},
	{"jwt", "timeout", applies, "remove it: reading the keys takes 5s at most"},
	{"callers", "claims", applies, "use jwt: {secret_env: VARIABLE, issuer: ..., audience: ...}"},
	{"callers", "max_wait", applies, "use max_wait of the upstream: limits of callers refuse immediately"},
	{"cloudwatch", "interval series", applies, "remove it: weir sends at most 1000 series, every 60s, in a Lambda function every 10s"},
	{"notify", "interval", applies, "remove it: the same problem is repeated after 15m"},
	{"notify", "runbook", applies, "remove it: messages link to the runbooks of weir"},
	{"traces", "central", ignored, "use traces.share: weir no longer reads sampling rules from X-Ray; weir export xray-sampling still writes them"},
	{"traces", "jaeger", ignored, "look up traces in Jaeger: weir trace reads only X-Ray"},
	{"traces", "each_second refused_each_second memory", applies, "remove it: weir keeps one successful and 50 refused calls a second besides traces.share, in 32 MiB"},
	{"traces", "trust", applies, "remove it: traces.share decides on successful calls"},
	{"traces", "xray", applies, "use traces.region, which turns X-Amzn-Trace-Id on"},
	{"traces", "headers", applies, "set OTEL_EXPORTER_OTLP_HEADERS"},
	{"traces", "service", applies, "set OTEL_SERVICE_NAME"},
	{"traces", "attributes", applies, "set OTEL_RESOURCE_ATTRIBUTES"},
	{"metrics", "url", applies, "use metrics: true with the receiver of traces, or set OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"},
	{"metrics", "headers", applies, "set OTEL_EXPORTER_OTLP_HEADERS"},
	{"metrics", "service", applies, "set OTEL_SERVICE_NAME"},
	{"metrics", "attributes", applies, "set OTEL_RESOURCE_ATTRIBUTES"},
	{"metrics", "every", applies, "set OTEL_METRIC_EXPORT_INTERVAL, in milliseconds"},
	{"upstreams.*", "full", applies, "remove it: if there is no memory for a body, language models refuse the call and other upstreams send it once"},
	{"upstreams.*", "deliver_open", applies, "remove it: deliveries wait while the breaker is open"},
	{"upstreams.*", "deliver_unknown", applies, "remove it: a delivery with an unknown result is repeated"},
	{"upstreams.*", "undeclared", applies, "remove it: requests without a declared operation are the operation default"},
	{"upstreams.*", "max_pause", applies, "remove it: a hint pauses calls for 15m at most"},
	{"upstreams.*", "replay", applies, "remove it: bodies up to 1 MiB are kept for retries"},
	{"upstreams.*.routes[]", "idempotency_busy idempotency_failed", applies, "remove it: a repetition of a running call gets 409, and a failed call is made again"},
	{"upstreams.*.operations.*", "retry concurrency deliver idempotency idempotency_busy idempotency_failed", applies, "declare a second upstream with a route for these requests"},
	{"upstreams.*.limits.*", "told", "advertised", ""},
	{"callers.limits.*", "told", "advertised", ""},
	{"upstreams.*.limits.*", "max_keys", applies, "remove it: a limit has at most 100000 keys in memory"},
	{"upstreams.*.limits.*", "local", applies, "declare the limit at an upstream of a file without a store"},
	{"callers.limits.*", "max_keys local", applies, "remove it: a limit has at most 100000 keys in memory, and is shared if the file has a store"},
	{"upstreams.*.limits.*.adaptive", "cut grow step recovery interval cut_interval used_share", applies, "use adaptive.rule, which sets them"},
	{"callers.limits.*.adaptive", "cut grow step recovery interval cut_interval used_share", applies, "use adaptive.rule, which sets them"},
	{"upstreams.*.fair", "by high normal low longest per_flow", applies, "write fair: SCOPE"},
	{"upstreams.*.retry", "throttle_base low high added max_hint hint_slack retry_on not_codes", applies, "use retry.schedule, which sets them; put codes of the upstream into classify"},
	{"upstreams.*.ask_again", "throttle_base low high added max_hint hint_slack retry_on not_codes", applies, "use ask_again.schedule, which sets them"},
	{"upstreams.*.quota", "schedule capacity retry throttle timeout success timeout_codes", applies, "write quota: NAME"},
	{"upstreams.*.budget", "floor window", applies, "remove it: the budget allows one more retry per second, and looks back 10s"},
	{"upstreams.*.breaker", "failures max_open probe_timeout count_throttled min_calls consecutive_for", applies, "use breaker.schedule, share or consecutive"},
	{"upstreams.*.concurrency", "limit min max", applies, "write concurrency: auto, a number, or off"},
	{"upstreams.*.timeouts", "upload_idle upload_over", applies, "remove it: uploads may pause for timeouts.idle, and their rate is averaged over 30s"},
	{"upstreams.*.llm", "default_model", applies, "let callers name the model"},
	{"upstreams.*.llm", "idle", applies, "use timeouts.idle"},
	{"upstreams.*.llm", "total hold", applies, "remove it: an answer may take 10m, and is held for the tier's part of cascade.deadline"},
	{"upstreams.*.llm", "patience", applies, "use cascade.deadline"},
	{"upstreams.*.llm", "callers", applies, "remove it: calls are charged to callers if the file has them"},
	{"upstreams.*.llm.cache", "memory any_temperature", applies, "remove it: a cache has 64 MiB, and requests with a temperature above 0 are not cached"},
	{"upstreams.*.llm.cascade.tiers[]", "timeout", applies, "use cascade.deadline, which the tiers share"},
	{"upstreams.*.llm.cascade.tiers[]", "threshold", applies, "remove it: the default decides which static answer is good enough"},
	{"upstreams.*.llm.cascade.tiers[].answers", "endpoint", applies, "set AWS_ENDPOINT_URL_DYNAMODB"},
	{"upstreams.*.llm.cascade.tiers[].answers", "every", applies, "remove it: the table is read every 5m"},
	{"upstreams.*.websocket", "realtime", ignored, "use websocket: {route_by: type}: weir no longer counts tokens of the Realtime API"},
	{"upstreams.*.websocket", "message_routes", applies, "declare the routes in operations or limits"},
	{"upstreams.*.websocket", "message_wait write_timeout ping idle lifetime refusals", applies, "remove it: the value is that of API Gateway or the default"},
	{"upstreams.*.jobs", "poll", applies, "set JOB_POLL_INTERVAL"},
	{"upstreams.*.jobs", "timeout", applies, "set JOB_THROTTLE_TIMEOUT"},
	{"upstreams.*.jobs", "hold", applies, "remove it: a starting job keeps its slot for 120s"},
	{"upstreams.*.aws", "presigned", applies, "remove it: presigned URLs pass"},
	{"upstreams.*.aws", "prefix_depth", applies, "remove it: the scope prefix is the first segment of the key"},
}

// Removed returns the fields of the file that are removed or renamed, each with what to use instead, in the order of the file.
func (f *File) Removed() doc.Errors { return f.removed }

// replaceRemoved renames and deletes the removed fields of a tree, and returns a complaint about each.
func replaceRemoved(root *node) doc.Errors {
	var all doc.Errors
	for _, r := range removals {
		var path []string
		if r.at != "" {
			path = strings.Split(r.at, ".")
		}
		r.replace(root, path, &all)
	}
	return all.Sorted()
}

// replace handles the mappings below n at a path.
func (r *removal) replace(n *node, path []string, all *doc.Errors) {
	if len(path) == 0 {
		r.fields(n, all)
		return
	}
	name, list := strings.CutSuffix(path[0], "[]")
	for _, e := range n.All() {
		if name != "*" && name != e.Name {
			continue
		}
		below := []*node{e.Value}
		if list {
			below = e.Value.Items
		}
		for _, child := range below {
			r.replace(child, path[1:], all)
		}
	}
}

// fields handles the fields of a mapping.
func (r *removal) fields(n *node, all *doc.Errors) {
	kept := n.Fields[:0:0]
	for _, e := range n.Fields {
		if slices.Contains(strings.Fields(r.names), e.Name) {
			*all = append(*all, r.complaint(e))
			if r.to == ignored || r.to != applies && n.Get(r.to) != nil {
				continue
			}
			if r.to != applies {
				e.Value.Path = strings.TrimSuffix(e.Value.Path, e.Name) + r.to
				e.Name = r.to
			}
		}
		kept = append(kept, e)
	}
	n.Fields = kept
}

// complaint returns what to report about a removed field of a file.
func (r *removal) complaint(e entry) doc.Complaint {
	c := doc.Complaint{File: e.Key.File, Line: e.Key.Line, Column: e.Key.Column, Field: e.Value.Path, Hint: r.instead}
	switch r.to {
	case applies:
		c.Problem = "is deprecated and will be removed in 0.2.0"
	case ignored:
		c.Problem = "is removed, and has no effect"
	default:
		c.Problem, c.Hint = "has a new name", "write "+r.to
	}
	return c
}
