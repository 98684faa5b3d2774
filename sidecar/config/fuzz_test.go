package config

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// FuzzParse looks for files that crash weir, and for invalid files that pass.
func FuzzParse(f *testing.F) {
	for _, test := range bad {
		f.Add([]byte(test.file), "", "")
	}
	for _, file := range seeds(f) {
		f.Add([]byte(file), "100", "3")
	}
	f.Add([]byte("upstreams: {a: {url: https://h, limits: {put: 1/2562047h}}}"), "9223372036854775807", "2147483647")
	f.Fuzz(func(t *testing.T, data []byte, rate, threshold string) { tryParse(t, data, rate, threshold) })
}

// seeds returns valid files.
func seeds(t testing.TB) (all []string) {
	files, err := filepath.Glob("../../examples/*/weir.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(data))
	}
	return all
}

// tryParse checks that Parse keeps its promises for any file.
func tryParse(t *testing.T, data []byte, rate, threshold string) (good bool) {
	t.Helper()
	env := setting([]string{"THROTTLE_PUT_RATE", rate, "THROTTLE_CIRCUIT_THRESHOLD", threshold})
	file, err := Parse("weir.yaml", data, env)
	if err != nil {
		if all, ok := err.(doc.Errors); !ok || len(all) == 0 || file != nil {
			t.Fatalf("got %+v and %T %v", file, err, err)
		}
		for _, c := range err.(doc.Errors) {
			if c.Problem == "" || strings.Contains(c.Error(), "\n") {
				t.Fatalf("got %+v, want a problem on one line", c)
			}
		}
		return false
	}
	for _, u := range file.Upstreams {
		if _, err := weir.New(u.Name, u.Policy, weir.Options{}); err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		if u.URL == nil || u.URL.Host == "" || len(u.Routes) == 0 {
			t.Fatalf("%s: url %v, routes %v", u.Name, u.URL, u.Routes)
		}
	}
	return true
}

// Files that differ from valid ones by a few lines or words resemble what people write more than a fuzzer's inputs
// do.
func TestAlmostGoodFiles(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	files := seeds(t)
	files = append(files, everyField)
	words := strings.Fields("off on 0 -1 5/s 3/min 1s 10% 1MiB put get tenant aws-2026 s3 http [a,b] {a: b} ~ 'x y' 1e99 NaN 9223372036854775808 *a &a")
	good := 0
	const cases = 1500
	for range cases {
		text := files[r.IntN(len(files))]
		for range 1 + r.IntN(4) {
			text = damage(r, text, words)
		}
		if tryParse(t, []byte(text), "", "") {
			good++
		}
	}
	t.Logf("%d of %d were good all the same", good, cases)
}

// damage changes one line: it deletes it, duplicates it, or replaces a value.
func damage(r *rand.Rand, text string, words []string) string {
	lines := strings.Split(text, "\n")
	i := r.IntN(len(lines))
	switch r.IntN(4) {
	case 0:
		lines = append(lines[:i:i], lines[i+1:]...)
	case 1:
		lines = append(lines[:i+1:i+1], lines[i:]...)
	default:
		if parts := strings.FieldsFunc(lines[i], func(c rune) bool { return strings.ContainsRune("{}[], ", c) }); len(parts) > 0 {
			lines[i] = strings.Replace(lines[i], parts[r.IntN(len(parts))], words[r.IntN(len(words))], 1)
		}
	}
	return strings.Join(lines, "\n")
}

// everyField has every field once, and no error.
const everyField = `
deliveries:
  file: off
  postgres: {url: "postgres://weir@localhost:5432/weir", password_env: DELIVERIES_PASSWORD, connections: 4, pooler: true}
  keep: 24h
  keep_dead: 48h
  max_stored: 5000
  max_size: 1GiB
  max_body: 64MiB
  bodies: bodies
  callbacks: {app: {upstream: b, path: /hooks/weir, secrets_env: [APP_HOOK, APP_HOOK_OLD], failed: true}}
  requests: {queue: "https://sqs.eu-central-1.amazonaws.com/123456789012/weir-requests", region: eu-central-1, owner: app}
store:
  dynamodb: {table: weir, region: eu-west-1, endpoint: "http://localhost:8000"}
  redis: off
  password_env: REDIS_PASSWORD
  file: off
  memory: off
  lease: off
  guard: 20ms
  timeout: 50ms
  queue: 100
  outage: 2m
  without: 25%
  prefix: team
decide:
  listen: 127.0.0.1:8082
  grpc: 127.0.0.1:8083
  rules: envoy/rules.yaml
  on_store_error: allow
  store_timeout: 10ms
  rate_limit_headers: policy
  open: false
  tokens: {a: {env: WEIR_TOKEN, upstreams: [a], keys: {tenant: [acme]}, reports: everyone, max_permits: 5, max_waiting: 5, max_keys: 5, max_pauses: 5}}
  hosts: [weir.internal]
  client_ca: ca.pem
  max_wait: 10s
  max_permits: 100
listen: 127.0.0.1:8080
admin: 0.0.0.0:8081
admin_open: true
admin_tokens: {ops: {env: WEIR_ADMIN_TOKEN}}
admin_client_ca: ops.pem
admin_auth: all
admin_tls: true
hosts: [weir.local]
hash_env: WEIR_HASH
harmless: [tenant]
origins: ["https://app.example"]
tokens: {app: {env: APP_TOKEN, upstreams: [a]}}
jwt: {jwks: "https://login.example.com/keys", issuer: "https://login.example.com", audience: weir, timeout: 2s, scopes: {a: a.write}}
client_ca: callers.pem
open: false
tls: {cert: c, key: k}
drain: 30s
lame_duck: 5s
max_header: 64KiB
bounds: {connections: 1000, caller_connections: 100, streams: 100, requests: 1000, caller_requests: 100}
log: info
log_each_second: 10
log_attempts: false
old_metric_names: true
traces:
  url: http://127.0.0.1:4318
  region: eu-west-1
  headers: {Authorization: OTLP_TOKEN}
  service: orders
  attributes: {deployment.environment.name: production}
  share: 5%
  each_second: 1
  refused_each_second: 50
  trust: false
  xray: true
  memory: 32MiB
metrics:
  url: http://127.0.0.1:4318
  headers: {Authorization: OTLP_TOKEN}
  service: orders
  attributes: {deployment.environment.name: production}
  every: 30s
cloudwatch:
  to: api
  namespace: Team
  region: eu-west-1
  interval: 30s
  series: 100
  design: drs
  static: {Service: orders}
  metrics: {RetryAttempts: Retries, APICallCount: off}
  dimensions: {Region: region}
notify:
  webhook_env: HOOK
  webhook_secret_env: HOOK_SECRET
  ntfy: https://ntfy.example.com
  ntfy_topic_env: TOPIC
  ntfy_token_env: TOKEN
  sns: arn:aws:sns:eu-west-1:123456789012:alerts
  kinds: [exhausted, fallback]
  interval: 5m
  runbook: "https://wiki.example.com/weir"
callers:
  keys: {user: "claim:sub", team: "header:X-Team"}
  claims: {secret_env: JWT, header: Authorization, optional: true, issuer: me, audience: weir}
  limits: {team: {rate: 5/s, scope: team, plans: {premium: 3x}}}
  missing: {team: refuse}
  max_wait: 1s
prices: prices.yaml
presets: presets
upstreams:
  a:
    url: https://h
    preset: http
    deliver_schedule: messaging
    deliver_order: stop
    deliver_open: dead
    deliver_unknown: dead
    deliver_callback: app
    deliver_headers: [X-Kept]
    routes: [{host: h, path: /p/, strip: true, deliver: false}]
    replay: 1MiB
    hosts: [api.example.com, "*.api.example.com"]
    pass_headers: [x-real-ip]
    undeclared: refuse
    full: refuse
    max_body: 5GiB
    keys: {tenant: "header:X-Tenant"}
    priority: "header:X-Priority"
    callers: false
    operations:
      put: {methods: [PUT], path: /, safe: yes, priority: low, retry: {attempts: 2}}
    limits:
      put: {rate: 9/s, burst: 3, shadow: {rate: 5/s}, labels: true, local: true, cold: share, operations: [put], unit: bytes, scope: tenant, shape: bucket, max_keys: 5}
      day: {amount: 25, every: day, zone: America/Los_Angeles, shape: fixed, unit: tokens}
      tokens: {rate: 1000/min, unit: tokens, scope: pool, advertised: tokens}
      learn:
        rate: 90/s
        adaptive: {rule: add, start: 50/s, min: 1/s, max: 80/s, cut: 50%, grow: 1.1, step: 2%, recovery: 5s, interval: 1s, cut_interval: 1s, used_share: 50%}
    retry:
      schedule: aws
      attempts: 4
      base: 10ms
      throttle_base: 20ms
      cap: 1s
      jitter: range
      low: 0.5
      high: 2
      added: 1s
      max_hint: 10s
      hint_slack: 1s
      retry_on: [throttled]
      codes: [A]
      not_codes: [B]
    breaker: {failures: 5, window: 1m, consecutive: 5, consecutive_for: 5s, success_takes_one: true, share: 50%, min_calls: 5, successes: 1, open: 1s, first_open: 500ms, max_open: 2s, probe_timeout: 1s, count_throttled: true, scope: tenant}
    connections: {idle: 100, idle_per_host: 10, idle_for: 1m}
    timeouts: {connect: 1s, tls: 1s, headers: 1s, attempt: 1s, call: 1s, upload_idle: 30s, upload_rate: 1KiB, upload_over: 10s}
    max_wait: 1s
    max_pause: 1s
    pause_scope: tenant
    paths: case-insensitive
    ask_again: not-enough-tokens
    concurrency: {limit: auto, min: 5, max: 50}
    fair: {by: tenant, high: 9, normal: 3, low: 1, longest: 100, per_flow: 10}
    classify: {throttled: [A], failed: [B], rejected: [C]}
    quota: {schedule: aws, capacity: 500, retry: 5, throttle: 5, timeout: 10, success: 1, timeout_codes: [T]}
    llm:
      family: anthropic
      default_model: claude
      key_env: KEY
      first_content: 30s
      idle: off
      total: 5m
      hold: 5s
      patience: 25s
      callers: false
      cache: {ttl: 5m, stale_while_revalidate: off, stale_if_error: 1h, memory: 1GiB, any_temperature: true, loose: true, similar: 90%}
      cascade:
        deadline: 20s
        maintenance: {on: true, message: "We are at work.", reduced: [uploads, search]}
        tiers:
          - {name: table, answers: {table: answers, region: us-east-1, endpoint: "http://localhost:8000", every: 1m}}
          - {name: other, upstream: c, model: m, confidence: 80%, timeout: 5s}
          - {cached: true}
          - {answers: answers.yaml, threshold: 60%, confidence: 0}
          - {message: ["Sorry.", "Not now."], contact: "help@example.com"}
    jobs: {threshold: 10, max: 12, poll: 10s, timeout: 1m, hold: 30s}
    aws: {service: drs, region: eu-west-1, role: "arn:aws:iam::123456789012:role/weir", external_id: x, presigned: refuse, prefix_depth: 2}
  s3: {url: "http://k", aws: {service: s3, shards: 16}}
  b:
    url: http://h
    credentials: {Authorization: TOPIC}
    operations: {o: {path: /o, deliver: always, idempotency: keep, idempotency_busy: wait, idempotency_failed: keep}}
    routes: [{path: /b/, idempotency: keep, idempotency_busy: wait, idempotency_failed: keep}]
    budget: {all: 100/min, share: 10%, floor: 1/s, window: 10s}
  c:
    url: http://h
    llm: {}
  d: {url: "h2c://h", grpc: true}
  m: {url: "http://h", mcp: true}
  e:
    url: http://h
    routes: [{path: /e/, websocket: true}]
    websocket:
      route_by: action
      message_routes: [send]
      max_message: 64KiB
      message_wait: 1s
      write_timeout: 5s
      ping: 20s
      idle: 1h
      lifetime: 2h
      refusals: 100
      connections: 100
      connections_by: {connection: 1}
`
