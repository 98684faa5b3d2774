//go:build unix

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A speech is a request to an upstream of a preset, with its response.
type speech struct{ preset, path, body, answer string }

var speeches = []speech{
	{"http", "/things", "", "{}"},
	{"s3", "/bucket/key", "", "an object"},
	{"openai", "/v1/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`,
		`{"id":"1","object":"chat.completion","created":1,"model":"gpt-4o","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`},
	{"openai-compatible", "/v1/chat/completions", `{"model":"llama","messages":[{"role":"user","content":"hi"}]}`,
		`{"id":"1","object":"chat.completion","created":1,"model":"llama","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`},
	{"anthropic", "/v1/messages", `{"model":"claude-3-haiku-20240307","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
		`{"id":"1","type":"message","role":"assistant","model":"claude-3-haiku-20240307","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`},
	{"gemini", "/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`},
	{"gemini-free", "/v1beta/models/gemini-2.5-pro:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`,
		`{"candidates":[{"content":{"role":"model","parts":[{"text":"hello"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`},
}

// A teller is an upstream that requests a wait of ten minutes while it is told to.
type teller struct {
	speech
	url    string
	tells  atomic.Bool
	asked  atomic.Int64
	client *http.Client
}

func newTeller(t *testing.T, s speech) *teller {
	u := &teller{speech: s, client: &http.Client{Timeout: served.Patience}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		if u.tells.Load() {
			w.Header().Set("Retry-After", "600")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = io.WriteString(w, `{"error":{"message":"slow down"}}`)
			return
		}
		_, _ = io.WriteString(w, s.answer)
	}))
	t.Cleanup(server.Close)
	u.url = server.URL
	return u
}

// yaml returns the configuration of a sidecar for it with a shared store.
func (u *teller) yaml(store string) string {
	return fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: %s\nupstreams:\n  up: {preset: %s, url: %q, max_wait: off}\n", store, u.preset, u.url)
}

// call makes a call through a sidecar and returns the status and the reason of a refusal.
func (u *teller) call(t *testing.T, w *served.Process) (code int, refused string) {
	t.Helper()
	method := http.MethodGet
	if u.body != "" {
		method = http.MethodPost
	}
	r, err := http.NewRequest(method, "http://"+w.Serve.Listen+"/up"+u.path, strings.NewReader(u.body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Authorization": "Bearer sk-1", "X-Api-Key": "k", "X-Goog-Api-Key": "k", "Anthropic-Version": "2023-06-01", "Content-Type": "application/json"} {
		r.Header.Set(name, value)
	}
	resp, err := u.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	return resp.StatusCode, resp.Header.Get("X-Weir-Refused")
}

func (u *teller) goes(t *testing.T, w *served.Process) bool {
	code, _ := u.call(t, w)
	return code == http.StatusOK
}

func (u *teller) paused(t *testing.T, w *served.Process) bool {
	_, refused := u.call(t, w)
	return refused == "paused"
}

// until waits for a condition in real time.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(served.Patience); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, served.Patience)
		}
		<-time.After(50 * time.Millisecond)
	}
}

// tell makes the upstream request a wait from a sidecar. The response is the upstream's, and may report that another attempt
// was refused. Calls that weir refuses earlier, because its store is slow, are retried.
func (u *teller) tell(t *testing.T, w *served.Process) {
	t.Helper()
	u.tells.Store(true)
	before := u.asked.Load()
	until(t, "the upstream is asked", func() bool {
		code, refused := u.call(t, w)
		asked := u.asked.Load() > before
		if asked && code != http.StatusTooManyRequests {
			t.Fatalf("the first that is told is answered %d, refused %q", code, refused)
		}
		return asked
	})
	u.tells.Store(false)
}

// silent checks that sidecars send nothing.
func (u *teller) silent(t *testing.T, all ...*served.Process) {
	t.Helper()
	before := u.asked.Load()
	for range 10 {
		for i, w := range all {
			if code, refused := u.call(t, w); refused != "paused" {
				t.Fatalf("process %d answers %d, refused %q", i, code, refused)
			}
		}
	}
	if n := u.asked.Load() - before; n > 0 {
		t.Fatalf("%d requests came in the pause", n)
	}
}

func pausesOf(t *testing.T, w *served.Process) []status.Pause {
	t.Helper()
	out, code := say(t, "status", "-json", "-admin", w.Serve.Admin)
	var r status.Report
	if err := json.Unmarshal([]byte(out), &r); code != 0 || err != nil {
		t.Fatalf("%d %v: %s", code, err, out)
	}
	return r.Upstreams[0].Pauses
}

// kept are the stores that processes share.
var kept = map[string]func(*testing.T) string{
	"redis": func(t *testing.T) string { return fmt.Sprintf("{redis: %q}", servers.Redis(t).URL()) },
	"dynamodb": func(t *testing.T) string {
		return fmt.Sprintf("{dynamodb: {table: weir, region: eu-central-1, endpoint: %q}}", servers.Dynalite(t).Endpoint())
	},
}

// A wait that an upstream requests from one weir serve also applies to another one with the same store, for each preset and
// store. A process that starts meanwhile sends no call. Both show the pause. Resuming it at one of them resumes all.
func TestAPauseHoldsEveryProcess(t *testing.T) {
	t.Parallel()
	keys := []string{"AWS_ACCESS_KEY_ID=AKWEIR", "AWS_SECRET_ACCESS_KEY=of weir", "AWS_SESSION_TOKEN=", "AWS_EC2_METADATA_DISABLED=true", "AWS_PROFILE="}
	for name, store := range kept {
		for _, s := range speeches {
			if name == "dynamodb" && s.preset != "http" && s.preset != "gemini" && s.preset != "openai" {
				continue // the difference is between the process and its upstream
			}
			t.Run(name+" "+s.preset, func(t *testing.T) {
				t.Parallel()
				u := newTeller(t, s)
				yaml := u.yaml(store(t))
				file := filepath.Join(t.TempDir(), "weir.yaml")
				if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				served.Init(t, keys, file)
				a, b := served.Start(t, yaml, keys...), served.Start(t, yaml, keys...)
				until(t, "both go", func() bool { return u.goes(t, a) && u.goes(t, b) })
				u.tell(t, a)
				until(t, "the other hears", func() bool { return u.paused(t, b) })
				u.silent(t, a, b)
				c := served.Start(t, yaml, keys...)
				until(t, "who starts hears", func() bool { return u.paused(t, c) }) // immediately on a fast machine
				u.silent(t, c)
				for i, w := range []*served.Process{b, c} {
					if p := pausesOf(t, w); len(p) == 0 || p[0].Reason != "rate" || p[0].LeftMS > 600_000 || p[0].LeftMS < 400_000 {
						t.Errorf("process %d shows %+v", i, p)
					}
				}
				if out, code := say(t, "resume", "up", "-admin", b.Serve.Admin); code != 0 || strings.HasPrefix(out, "0") {
					t.Errorf("resume: %s", out)
				}
				until(t, "all go on", func() bool { return !u.paused(t, a) && !u.paused(t, b) && !u.paused(t, c) })
			})
		}
	}
}

// With a file as store a pause survives kill -9.
func TestAPauseOutlivesItsProcess(t *testing.T) {
	t.Parallel()
	for _, s := range speeches {
		t.Run(s.preset, func(t *testing.T) {
			t.Parallel()
			u := newTeller(t, s)
			yaml := u.yaml(fmt.Sprintf("{file: %q}", filepath.Join(t.TempDir(), "weir.db")))
			a := start(t, yaml)
			until(t, "it goes", func() bool { return u.goes(t, a) })
			u.tell(t, a)
			until(t, "it is written", func() bool {
				p := pausesOf(t, a)
				return len(p) > 0 && u.paused(t, a) && written(t, yaml)
			})
			a.Signal(syscall.SIGKILL)
			_ = a.Exited()
			b := start(t, yaml)
			until(t, "it knows still", func() bool { return u.paused(t, b) })
			u.silent(t, b)
		})
	}
}

// written reports whether the file of a store has pauses.
func written(t *testing.T, yaml string) bool {
	t.Helper()
	_, rest, _ := strings.Cut(yaml, `{file: "`)
	name, _, _ := strings.Cut(rest, `"`)
	b, err := os.ReadFile(name)
	return err == nil && strings.Contains(string(b), `{"pauses":[{`)
}

// While Redis is unavailable each process keeps its pause. When Redis returns, empty or with an unreadable record, the other
// processes get the pause.
func TestAPauseAndAStoreThatGoesAway(t *testing.T) {
	t.Parallel()
	redis := servers.Redis(t)
	u := newTeller(t, speeches[0])
	yaml := u.yaml(fmt.Sprintf("{redis: %q}", redis.URL()))
	a, b := start(t, yaml), start(t, yaml)
	until(t, "both go", func() bool { return u.goes(t, a) && u.goes(t, b) })
	redis.Kill()
	u.tell(t, a)
	u.silent(t, a)
	if !u.goes(t, b) {
		t.Error("who cannot have heard does not go")
	}
	redis.Restart()
	until(t, "the other hears", func() bool { return u.paused(t, b) })
	u.silent(t, a, b)
	for _, garbage := range []string{"", "x", strings.Repeat("\xff", 100), `{"pauses":7}`} {
		keys, err := redis.Do("KEYS", "*pauses*")
		if err != nil || keys == "" || strings.Contains(keys, "\n") {
			t.Fatalf("keys %q, %v", keys, err)
		}
		if _, err := redis.Do("SET", keys, garbage); err != nil {
			t.Fatal(err)
		}
		if out, code := say(t, "resume", "up", "-admin", b.Serve.Admin); code != 0 {
			t.Errorf("resume: %s", out)
		}
		until(t, "all go on", func() bool { return u.goes(t, a) && u.goes(t, b) })
		u.tell(t, a)
		until(t, "the other hears", func() bool { return u.paused(t, b) })
	}
}
