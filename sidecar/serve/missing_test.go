package serve

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// lackingFile has limits of one call an hour for each run and of three for all calls.
const lackingFile = `
listen: localhost:80
admin: 127.0.0.2:81
callers:
  keys: {run: "header:X-Agent-Run", tool: "query:tool"}
  missing: {run: MISSING, tool: share}
  limits: {global: {rate: 3/h, burst: 3}, user: off, user-day: off, run: {rate: 1/h, burst: 1, scope: run}}
upstreams:
  api: {url: "http://api.test", callers: true}
  claude: {url: "http://api.test", preset: anthropic, llm: {callers: true}}
  gpt: {url: "http://api.test", preset: openai, llm: {callers: true}}
`

const lackedText = "the header X-Agent-Run is missing: send X-Agent-Run: NAME, where NAME is the caller's run"

// A call without a required key is refused in the form of its API, names the missing key, is charged to no limit, and is
// counted and explained.
func TestCallWithoutRequiredKeyIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCounting()
		c.begin(t, strings.ReplaceAll(lackingFile, "MISSING", "refuse"))
		defer c.stop()
		for _, tt := range []struct{ method, path, body, want string }{
			{"GET", "/api/x", "", `"code":"VALIDATION_ERROR","message":"` + lackedText},
			{"POST", "/claude/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":5,"messages":[]}`, `"type":"invalid_request_error"`},
			{"POST", "/gpt/v1/chat/completions", `{"model":"gpt-4o","messages":[]}`, `"type":"invalid_request_error"`},
		} {
			for range 5 {
				status, text := callOfRun(t, c.client, tt.method, tt.path, tt.body, "")
				if status != http.StatusBadRequest || !strings.Contains(text, tt.want) || !strings.Contains(text, lackedText) {
					t.Errorf("%s: %d %s, want 400 and %s", tt.path, status, text, tt.want)
				}
			}
		}
		for i, run := range []string{"a", "b", "c"} { // nothing was charged
			if status, text := callOfRun(t, c.client, "GET", "/api/x", "", run); status != http.StatusOK {
				t.Errorf("call %d: %d %s", i, status, text)
			}
		}
		if len(c.heard) != 3 {
			t.Errorf("%d calls reached the API, want 3", len(c.heard))
		}
		if _, text := c.get(t, "http://127.0.0.2:81/metrics"); !strings.Contains(text, `weir_listener_refused_total{listener="listen",reason="key"} 15`) {
			t.Errorf("the refusals are not counted: %s", text)
		}
		calls, err := c.s.kept.Find(t.Context(), "lacking")
		if err != nil || len(calls) == 0 {
			t.Fatalf("no record of a refusal: %v", err)
		}
		text := calls[0].Text()
		for _, want := range []string{"api: refused by weir: missing_key", lackedText, "callers.missing: write run: share"} {
			if !strings.Contains(text, want) {
				t.Errorf("weir why says %s, want %q", text, want)
			}
		}
	})
}

// Calls without a key that is not required are counted together.
func TestCallsWithoutKeyShareOneCounter(t *testing.T) {
	for _, missing := range []string{"share", ""} {
		synctest.Test(t, func(t *testing.T) {
			c := newCounting()
			file := strings.ReplaceAll(lackingFile, "MISSING", missing)
			if missing == "" {
				file = strings.Replace(lackingFile, "  missing: {run: MISSING, tool: share}\n", "", 1)
			}
			c.begin(t, file)
			defer c.stop()
			for i, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
				if status, text := callOfRun(t, c.client, "GET", "/api/x", "", ""); status != want {
					t.Errorf("missing %q, call %d: %d %s, want %d", missing, i, status, text, want)
				}
			}
			if status, text := callOfRun(t, c.client, "GET", "/api/x", "", "a"); status != http.StatusOK {
				t.Errorf("a call with a run: %d %s", status, text)
			}
		})
	}
}

// callOfRun sends a request of a run, or without one.
func callOfRun(t *testing.T, c *http.Client, method, path, body, run string) (int, string) {
	t.Helper()
	return callAs(t, c, "", method, path, body, func(h http.Header) {
		if h.Set("X-Correlation-Id", "lacking"); run != "" {
			h.Set("X-Agent-Run", run)
		}
	})
}
