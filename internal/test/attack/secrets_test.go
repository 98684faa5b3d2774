//go:build unix

package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// canaries are secrets and private keys of callers.
var canaries = map[string]string{
	"weir's key": "sk-canary-of-weir-0001", "a token": "canary-token-of-ann-0002", "the hash's secret": "canary-secret-of-hash-0003", "an AWS secret": "canary-aws-secret-0004",
	"the webhook's secret": "canary-of-the-hook-0005", "a bearer": "canary-bearer-0006", "a cookie": "canary-cookie-0007", "a query": "canary-query-0008", "a user": "canary-user-0009",
	"a session": "canary-session-0010", "a body": "canary-body-0011", "an answer": "canary-answer-0012", "a basic password": "canary-basic-0013", "a person": "canary-person-0014", "a decided session": "canary-decided-0015",
}

// Secrets and callers' keys pass through a weir that throttles, refuses, retries, gives up, pauses, notifies and crashes. None
// appears in its output.
func TestAttackCanaries(t *testing.T) {
	var mu sync.Mutex
	var told strings.Builder
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(&told, "%v %s\n", r.Header, b)
	}))
	defer hook.Close()
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		switch {
		case strings.HasPrefix(r.URL.Path, "/slow"):
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusTooManyRequests)
		case strings.HasPrefix(r.URL.Path, "/bad"):
			w.WriteHeader(http.StatusInternalServerError)
			return
		case strings.HasPrefix(r.URL.Path, "/cut"):
			panic(http.ErrAbortHandler)
		case strings.HasPrefix(r.URL.Path, "/v1/"):
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":5,"completion_tokens":5,"total_tokens":10}}`, canaries["an answer"])
			return
		}
		fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s for %s"}}`, r.Header.Get("Authorization"), canaries["an answer"])
	}))
	defer up.Close()
	for _, hashed := range []bool{true, false} {
		dir := t.TempDir()
		head := "hash_env: HASH\n"
		if !hashed {
			head = ""
		}
		w := served.Start(t, head+local+fmt.Sprintf(`
log: debug
store: {file: %q}
tokens: {ann: {env: ANN_TOKEN}}
notify: {webhook_env: HOOK, webhook_secret_env: HOOK_SECRET, interval: 1m}
callers: {keys: {user: "header:X-User"}}
decide: {listen: "127.0.0.1:0"}
upstreams:
  api:
    url: %q
    keys: {user: "header:X-User", session: "query:session", person: "header:Authorization"}
    operations: {slow: {path: /slow/}}
    limits: {user: {rate: 5/h, burst: 5, scope: user, labels: %t}, session: {rate: 9/h, burst: 9, scope: session}, person: {rate: 9/h, burst: 9, scope: person}}
    breaker: {scope: user}
    max_wait: 1ms # so that limits refuse, too
  gpt: {url: %q, llm: {family: openai, key_env: GPT_KEY, cache: true, callers: true}}
  gone: {url: "http://127.0.0.1:9", keys: {user: "header:X-User"}, aws: {service: s3, region: eu-west-1}}
%s`, filepath.Join(dir, "state.db"), up.URL, hashed, up.URL, bystander(t)), "HASH="+canaries["the hash's secret"], "ANN_TOKEN="+canaries["a token"], "GPT_KEY="+canaries["weir's key"],
			"HOOK="+hook.URL+"/?token="+canaries["a query"], "HOOK_SECRET="+canaries["the webhook's secret"], "AWS_ACCESS_KEY_ID=AKWEIR", "AWS_SECRET_ACCESS_KEY="+canaries["an AWS secret"], "AWS_EC2_METADATA_DISABLED=true")
		at, admin := w.Serve.Listen, w.Serve.Admin
		mine := []string{"X-Weir-Token: " + canaries["a token"], "Authorization: Bearer " + canaries["a bearer"], "Cookie: s=" + canaries["a cookie"], "X-User: " + canaries["a user"], "Proxy-Authorization: Basic " + canaries["a basic password"]}
		var shown strings.Builder // visible to everyone
		beside(t, at, func() {
			for _, target := range []string{"/api/x", "/api/bad", "/api/cut", "/api/slow/x", "/api/x", "/api/x", "/api/x", "/api/x", "/gone/x", "/gpt/v1/chat/completions", "/gpt/v1/chat/completions", "/gpt/v1/models", "/none"} {
				body := fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, canaries["a body"])
				resp := say(t, at, request("POST", target+"?session="+canaries["a session"]+"&key="+canaries["a query"], at, body, mine...))
				if resp.Header.Get("X-Correlation-Id") != "" && resp.StatusCode >= 500 || resp.StatusCode == 404 || resp.StatusCode == 401 {
					fmt.Fprintln(&shown, resp.Header, text(resp))
				}
			}
			say(t, at, request("POST", "/api/x", at, "", "X-Weir-Token: "+canaries["a bearer"]))
			say(t, at, "POST /api/"+canaries["a query"]+" b HTTP/1.1\r\nHost: "+at+"\r\nConnection: close\r\n\r\n")
			for range 6 {
				say(t, w.Serve.Decide, request("POST", "/v1/acquire", w.Serve.Decide, fmt.Sprintf(`{"upstream":"api","keys":{"user":%q,"session":%q}}`, canaries["a person"], canaries["a decided session"])))
			}
		}, mine[0])
		for _, path := range []string{"/metrics", "/v1/status", "/readyz", "/livez"} {
			page := text(get(t, "http://"+admin+path))
			if path == "/metrics" && (strings.Contains(page, canaries["a user"]) || strings.Contains(page, canaries["a person"])) {
				t.Errorf("metrics name a user, hashed %v", hashed) // also if no secret hides names elsewhere
			}
			fmt.Fprintln(&shown, page)
		}
		status, _ := served.Say(t, nil, "status", "-admin", admin)
		check, _ := served.Say(t, []string{"HASH=" + canaries["the hash's secret"]}, "check", w.File)
		fmt.Fprintln(&shown, status, check)
		if !strings.Contains(shown.String(), "weir_attempts_total") || !strings.Contains(status, "api") {
			t.Fatalf("nothing was shown: %s", shown.String())
		}
		// A key is found by its original name, and by its displayed form.
		if hashed {
			for _, key := range []string{canaries["a user"], hmacOf(t, status+w.Log())} {
				out, code := served.Say(t, nil, "pause", "-admin", admin, "-limit", "user", "-limit-key", key, "api")
				if code != 0 || strings.Contains(out, canaries["a user"]) {
					t.Errorf("pause of %s: %d: %s", key, code, out)
				}
			}
			resp := say(t, at, request("GET", "/api/x", at, "", append(mine, "Content-Type: text/plain")...))
			if resp.StatusCode != 429 && resp.StatusCode != 503 {
				t.Errorf("who is paused by name is answered %s", resp.Status)
			}
		}
		w.Signal(syscall.SIGQUIT) // a crash with all stacks
		_ = w.Exited()
		if hashed && !strings.Contains(w.Log(), "hmac:") {
			t.Errorf("no line shows a key: %s", w.Log())
		}
		stored, err := os.ReadFile(filepath.Join(dir, "state.db"))
		if err != nil {
			t.Fatal(err)
		}
		mu.Lock()
		outputs := map[string]string{"shown": shown.String(), "log": w.Log(), "told": told.String(), "the store": string(stored)}
		told.Reset()
		mu.Unlock()
		for what, canary := range canaries {
			for where, all := range outputs {
				switch {
				case where == "told" && what == "a query", where == "the store" && what == "an answer": // the notified URL itself, and stored responses
					continue
				case !hashed && (what == "a user" || what == "a person") && where != "told":
					if strings.Contains(text(&http.Response{Body: io.NopCloser(strings.NewReader(metricsOf(all)))}), canary) {
						t.Errorf("without a secret, metrics hold %s", what)
					}
					continue
				}
				if i := strings.Index(all, canary); i >= 0 {
					t.Errorf("hashed %v: %s holds %s: ...%q...", hashed, where, what, all[max(0, i-200):min(len(all), i+100)])
				}
			}
		}
	}
}

// metricsOf returns the lines of a text that are metrics.
func metricsOf(all string) string { return grep(all, "weir_") }

// hmacOf returns a key in its displayed form.
func hmacOf(t testing.TB, shown string) string {
	_, rest, ok := strings.Cut(shown, "hmac:")
	if !ok || len(rest) < 16 {
		t.Fatalf("no key is shown: %s", shown)
	}
	return "hmac:" + rest[:16]
}

// A private key or a store that other users of the machine can read is rejected. The error has the correction.
func TestAttackFilesThatOthersRead(t *testing.T) {
	dir := t.TempDir()
	state := filepath.Join(dir, "state.db")
	file := "listen: 127.0.0.1:0\nadmin: off\nstore: {file: " + state + "}\nupstreams: {a: {url: \"http://127.0.0.1:9\"}}\n"
	w := served.Start(t, file)
	if info, err := os.Stat(state); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the store is made as %v, %v", info.Mode(), err)
	}
	w.Signal(syscall.SIGTERM)
	_ = w.Exited()
	if err := os.Chmod(state, 0o644); err != nil {
		t.Fatal(err)
	}
	bad := served.Launch(t, file)
	if err := bad.Exited(); err == nil || !strings.Contains(bad.Log(), "chmod 600 '"+state+"'") {
		t.Errorf("a store that others read: %v: %s", err, bad.Log())
	}
}
