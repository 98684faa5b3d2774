package config

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestTokensOpenTheListenerTheyName(t *testing.T) {
	f := parse(t, `
decide: {listen: 127.0.0.1:0}
tokens:
  app: {env: APP, upstreams: [a]}
  ops: {env: [OPS, OPS_OLD], admin: true}
  job: {env: JOB, reports: everyone, keys: {tenant: [acme]}}
upstreams: {a: {url: https://h}}
`)
	if got := fmt.Sprint(f.Callable.Tokens); len(f.Callable.Tokens) != 1 || !strings.Contains(got, "APP") {
		t.Errorf("callers: got %s, want the token app alone", got)
	}
	if got := fmt.Sprint(f.AdminAccess.Tokens); len(f.AdminAccess.Tokens) != 2 || !strings.Contains(got, "OPS_OLD") {
		t.Errorf("admin: got %s, want both secrets of ops", got)
	}
	if got := fmt.Sprint(f.Decide.Tokens); len(f.Decide.Tokens) != 1 || !strings.Contains(got, "JOB") {
		t.Errorf("decide: got %s, want the token job alone", got)
	}
	if r := f.Decide.Rights["job"]; !r.Everyone || len(r.Keys["tenant"]) != 1 {
		t.Errorf("decide: got rights %+v, want everyone and tenant acme", r)
	}
	for yaml, want := range map[string]string{
		"tokens: {j: {env: J, reports: own}}":                                             "add decide",
		"decide: {listen: 127.0.0.1:0}\ntokens: {j: {env: J, reports: own, admin: true}}": "write two tokens",
		"tokens: {j: {admin: true}}":                                                      "has no env",
	} {
		if _, err := Parse("weir.yaml", []byte(yaml+"\nupstreams: {a: {url: https://h}}"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
	}
}

func TestJWTSecretIdentifiesCallers(t *testing.T) {
	f := parse(t, "jwt: {secret_env: JWT, issuer: me}\ncallers: {keys: {user: \"claim:sub\"}}\nupstreams: {a: {url: https://h, callers: true}}")
	if c := f.Callers.Claims; c == nil || c.SecretEnv != "JWT" || c.Issuer != "me" || f.Callable.JWT != nil {
		t.Errorf("got claims %+v and jwt %v, want the secret for claims only", c, f.Callable.JWT)
	}
	for yaml, want := range map[string]string{
		"jwt: {secret_env: JWT}": "no key of callers reads a claim",
		"jwt: {secret_env: JWT, jwks: \"https://l.example/k\"}\ncallers: {keys: {user: \"claim:sub\"}}": "one of jwks and secret_env",
		"callers: {keys: {user: \"claim:sub\"}}":                                                        "no key to verify the token",
	} {
		if _, err := Parse("weir.yaml", []byte(yaml+"\nupstreams: {a: {url: https://h}}"), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", yaml, err, want)
		}
	}
}

func TestVariablesOfOpenTelemetryApply(t *testing.T) {
	const up = "\nupstreams: {a: {url: https://h}}"
	env := []string{"OTEL_SERVICE_NAME", "orders", "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=prod, broken, a=b%20c", "OTEL_METRIC_EXPORT_INTERVAL", "30000"}
	f := parse(t, "traces: {url: http://127.0.0.1:4318}\nmetrics: true"+up, env...)
	if f.Traces.Service != "orders" || fmt.Sprint(f.Traces.Attrs) != "map[a:b c deployment.environment.name:prod]" {
		t.Errorf("traces: got service %q, attributes %v", f.Traces.Service, f.Traces.Attrs)
	}
	if m := f.Metrics; m.Service != "orders" || m.URL != "http://127.0.0.1:4318/v1/metrics" || m.Every != 30*time.Second {
		t.Errorf("metrics: got %+v", m)
	}
	f = parse(t, "traces: {url: http://127.0.0.1:4318, service: shop}\nmetrics: true"+up, append(env, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://10.0.0.1:4318/m")...)
	if f.Traces.Service != "shop" || f.Metrics.URL != "http://10.0.0.1:4318/m" {
		t.Errorf("got service %q and metrics to %s, want the file's service and the variable's address", f.Traces.Service, f.Metrics.URL)
	}
	f = parse(t, "metrics: true"+up, "OTEL_EXPORTER_OTLP_ENDPOINT", "http://10.0.0.1:4318")
	if f.Metrics.URL != "http://10.0.0.1:4318/v1/metrics" {
		t.Errorf("got metrics to %s", f.Metrics.URL)
	}
	h := OTelHeaders(setting([]string{"OTEL_EXPORTER_OTLP_HEADERS", "Authorization=Bearer%20x"}))
	if fmt.Sprint(h) != "map[Authorization:Bearer x]" {
		t.Errorf("headers: got %v", h)
	}
}
