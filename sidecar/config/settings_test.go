package config

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/doc"
)

// Settings combines the file, its presets and the environment. Each value has its position, and none is a secret.
func TestSettingsAreWhatIsInForce(t *testing.T) {
	f := parse(t, `listen: 127.0.0.1:1
hosts: [a.example, b.example]
upstreams:
  s3:
    url: https://s3.example
    preset: s3
    limits:
      get: 500/s
      delete: off
  odd:
    url: https://odd.example
    keys: {tenant: "header:sk-abcdefgh12345678"}
`, "WEIR_LISTEN", "127.0.0.1:2", "THROTTLE_PUT_RATE", "7")
	all := f.Settings()
	for _, want := range []doc.Setting{
		{Field: "THROTTLE_PUT_RATE", Value: "7", From: "environment"},
		{Field: "WEIR_LISTEN", Value: "127.0.0.1:2", From: "environment"},
		{Field: "hosts", Value: "[a.example, b.example]", From: "weir.yaml:2"},
		{Field: "upstreams.s3.limits.get", Value: "500/s", From: "weir.yaml:8"},
		{Field: "upstreams.s3.limits.delete", Value: "off", From: "weir.yaml:9"},
		{Field: "upstreams.s3.limits.put.rate", Value: "3500/s", From: "preset s3 (weir.yaml:6)"},
		{Field: "upstreams.odd.keys.tenant", Value: "header:sk-***", From: "weir.yaml:12"},
	} {
		if !slices.Contains(all, want) {
			t.Errorf("%v is not among %v", want, all)
		}
	}
	if slices.ContainsFunc(all, func(s doc.Setting) bool { return s.Field == "listen" }) {
		t.Error("the file's own address is shown, which the environment overrides")
	}
}

// If the file contains a secret where the name of an environment variable belongs, Settings hides it, in every field
// and whatever its form.
func TestBareSecretsAreNotShown(t *testing.T) {
	const yaml = `hash_env: %[1]s
admin_tokens: {ops: {env: %[1]s}}
tokens: {app: {env: [%[1]s, GOOD]}}
callers: {keys: {user: "claim:sub"}, claims: {secret_env: %[1]s}}
decide: {tokens: {app: {env: %[1]s}}}
notify: {webhook_env: %[1]s, webhook_secret_env: %[1]s, ntfy_topic_env: %[1]s, ntfy_token_env: %[1]s}
traces: {url: "http://127.0.0.1:4318", headers: {X-Scope: %[1]s}}
metrics: {url: "http://127.0.0.1:4318", headers: {X-Scope: %[1]s}}
store: {redis: "redis://localhost", password_env: %[1]s}
deliveries:
  postgres: {url: "postgres://weir@localhost/weir", password_env: %[1]s}
  callbacks: {over: {upstream: up, secrets_env: %[1]s}}
upstreams:
  up: {url: "https://up.example", credentials: {Authorization: %[1]s}}
  chat: {url: "https://chat.example", preset: openai, llm: {key_env: %[1]s}}
`
	fields := []string{
		"hash_env", "admin_tokens.ops.env", "tokens.app.env", "callers.claims.secret_env", "decide.tokens.app.env", "notify.webhook_env", "notify.webhook_secret_env",
		"notify.ntfy_topic_env", "notify.ntfy_token_env", "traces.headers.X-Scope", "metrics.headers.X-Scope", "store.password_env", "deliveries.postgres.password_env",
		"deliveries.callbacks.over.secrets_env", "upstreams.up.credentials.Authorization", "upstreams.chat.llm.key_env",
	}
	shown := func(secret string, env ...string) map[string]string {
		all := make(map[string]string)
		for _, s := range parse(t, fmt.Sprintf(yaml, secret), append(env, "GOOD", "x")...).Settings() {
			all[s.Field] = s.Value
		}
		return all
	}
	for _, secret := range []string{"CORRECTHORSEBATTERY", "hunter2"} {
		all := shown(secret)
		for _, field := range fields {
			if all[field] != "***" {
				t.Errorf("%s is shown as %q", field, all[field])
			}
			delete(all, field)
		}
		for field, value := range all {
			if strings.Contains(value, secret) {
				t.Errorf("%s is shown as %q, and is none of the fields of this test", field, value)
			}
		}
	}
	all := shown("NAME", "NAME", "the secret")
	for _, field := range fields {
		if want := "NAME"; all[field] != want && all[field] != "[NAME, GOOD]" {
			t.Errorf("%s names a variable, and is shown as %q", field, all[field])
		}
	}
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range regexp.MustCompile("(?m)^- `((?:[a-z_]+_)?env)` \\(").FindAllStringSubmatch(string(page), -1) {
		if !slices.ContainsFunc(fields, func(field string) bool { return field[strings.LastIndexByte(field, '.')+1:] == row[1] }) {
			t.Errorf("the page has a field %s, and this test has none", row[1])
		}
	}
}
