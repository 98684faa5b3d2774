package config_test

import (
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// Every variable that a file names is checked, and errors contain the position.
func TestWhatTheEnvironmentLacks(t *testing.T) {
	const file = `hash_env: HASH
tokens: {app: {env: APP}, other: {env: OTHER}}
admin_tokens: {me: {env: ADMIN}}
store: {redis: "redis://127.0.0.1:6379", password_env: PASSWORD}
decide: {listen: 127.0.0.1:0, tokens: {d: {env: DECIDE}}}
notify: {webhook_env: HOOK, webhook_secret_env: HOOK_SECRET, ntfy_topic_env: TOPIC, ntfy_token_env: TOPIC_TOKEN}
callers: {keys: {tenant: "claim:t"}, claims: {secret_env: CLAIMS}, limits: {a: {rate: 1/s}}}
upstreams:
  gpt: {url: http://h, keys: {env: "header:X", my_env: "header:Y"}, limits: {a_env: 5/s, b: {rate: 5/s, scope: env}}, llm: {family: openai, key_env: KEY}}
`
	f, err := config.Parse("weir.yaml", []byte(file), nil)
	if err != nil {
		t.Fatal(err)
	}
	env := func(values map[string]string) func(string) (string, bool) {
		return func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	}
	all := map[string]string{}
	for _, name := range []string{"HASH", "APP", "OTHER", "ADMIN", "PASSWORD", "DECIDE", "HOOK", "HOOK_SECRET", "TOPIC", "TOPIC_TOKEN", "CLAIMS", "KEY"} {
		all[name] = "a-secret-that-is-long-enough"
	}
	if err := f.CheckEnv(env(all)); err != nil {
		t.Errorf("all is there: %v", err)
	}
	if err := f.CheckEnv(env(nil)); err == nil || strings.Count(err.Error(), "\n") != len(all)-1 {
		t.Errorf("nothing is there: %v", err)
	}
	all["CLAIMS"] = "a secret, with spaces and ümläuts"
	if err := f.CheckEnv(env(all)); err != nil {
		t.Errorf("a secret of claims stands in no header: %v", err)
	}
	delete(all, "KEY")
	all["APP"], all["CLAIMS"] = "short-one", "  x            \n"
	want := `weir.yaml:2:21: tokens.app.env: environment variable APP: is shorter than 16 characters; make one with: openssl rand -hex 32
weir.yaml:7:59: callers.claims.secret_env: environment variable CLAIMS: is shorter than 16 characters; make one with: openssl rand -hex 32
weir.yaml:9:150: upstreams.gpt.llm.key_env: environment variable KEY is not set; set it before weir starts`
	if err := f.CheckEnv(env(all)); err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// During a rotation, the old and the new secret belong to the same caller, wherever the file names tokens.
func TestASecretIsChangedWithoutAGap(t *testing.T) {
	f, err := config.Parse("weir.yaml", []byte(`
tokens: {app: {env: [OLD, NEW], upstreams: [a]}}
admin_tokens: {me: {env: [OLD, NEW]}}
decide: {listen: 127.0.0.1:0, tokens: {app: {env: [OLD, NEW], upstreams: [a], max_permits: 7}}}
upstreams: {a: {url: http://h}, b: {url: http://i}}
`), nil)
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"OLD": "the-old-secret-of-weir", "NEW": "the-new-secret-of-weir"}
	env := func(name string) (string, bool) { v, ok := values[name]; return v, ok }
	for place, read := range map[string]func() (*auth.Auth, error){
		"tokens":        func() (*auth.Auth, error) { return f.Callable.Auth(env, nil) },
		"admin_tokens":  func() (*auth.Auth, error) { return f.AdminAccess.Auth(env, nil) },
		"decide.tokens": func() (*auth.Auth, error) { return f.Decide.Auth(env, nil) },
	} {
		a, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range values {
			who, err := a.Check("Bearer "+secret, nil)
			if want := map[bool]string{true: "me", false: "app"}[place == "admin_tokens"]; err != nil || who != want {
				t.Errorf("%s: %s is %q, %v", place, secret, who, err)
			}
			if place != "admin_tokens" && (a.May(who, "a") != nil || a.May(who, "b") == nil) {
				t.Errorf("%s: %s opens other upstreams than it should", place, secret)
			}
		}
	}
	if f.Decide.Rights["app"].MaxPermits != 7 {
		t.Errorf("rights: %+v", f.Decide.Rights)
	}
	delete(values, "NEW")
	if err := f.CheckEnv(env); err == nil || strings.Count(err.Error(), "environment variable NEW is not set") != 3 {
		t.Errorf("the new one is not there: %v", err)
	}
}
