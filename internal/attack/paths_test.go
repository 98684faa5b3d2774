//go:build unix

package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/served"
)

// A caller writes the path of a model's call so that a server takes it for one and weir,
// perhaps, does not: every call is counted in tokens, and the limit holds.
func TestAttackTokenLimitsByPath(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":500,"completion_tokens":500,"total_tokens":1000}}`)
	}))
	defer s.Close()
	w := served.Start(t, local+fmt.Sprintf(`
upstreams:
  gpt:
    url: %q
    llm: {family: openai}
    max_wait: off
    limits: {tpd: {amount: 10000, every: day, unit: tokens}}
  shut: {url: %q, llm: {family: openai}, undeclared: refuse}
  plain:
    url: %q
    operations: {dear: {path: /dear}}
    limits: {dear: {amount: 5, every: day, operations: [dear]}}
    max_wait: off
%s`, s.URL, s.URL, s.URL, bystander(t)))
	at := w.Serve.Listen
	const body = `{"model":"gpt-4o","max_tokens":10,"messages":[{"role":"user","content":"hi"}]}`
	beside(t, at, func() {
		good := 0
		for i, path := range []string{
			"/v1/chat/completions", "/v1/chat/%63ompletions", "/v1/chat/completions/", "/v1/chat/completions;x=1", "/v1//chat/completions", "/v1/chat%2Fcompletions", "/V1/CHAT/COMPLETIONS",
			"/v1/chat/completions%20", "/v1/chat/%2563ompletions", "/v1/chat/completions%3Fx", "/v1/completion%73", "/v1/response%73/", "/v1/message%73",
		} {
			for _, method := range []string{"POST", "PUT", "PATCH", "GET"} {
				target := "/gpt" + path
				if i%2 == 1 {
					target = "/%67pt" + path
				}
				if resp := say(t, at, request(method, target, at, body)); resp.StatusCode == 200 {
					good++
				} else if resp.StatusCode != 429 {
					t.Errorf("%s %s: answered %s: %s", method, target, resp.Status, text(resp))
				}
			}
		}
		if good > 11 {
			t.Errorf("%d calls of 1,000 tokens went, of a limit of 10,000", good)
		}
		for _, path := range []string{"/v1/models", "/v1/files", "/v1/fine_tuning/jobs", "/anything"} {
			if resp := say(t, at, request("POST", "/shut"+path, at, "{}")); resp.StatusCode != 403 {
				t.Errorf("%s, which is closed: answered %s", path, resp.Status)
			}
		}
		went := 0
		for _, path := range []string{"/dear", "/%64ear", "//dear", "/dear/x", "/%2564ear", "/dear;a=b", "/./dear", "/x/../dear", `/\dear`, "/%2fdear", "/dea%72"} {
			for range 2 {
				if resp := say(t, at, request("GET", "/plain"+path, at, "")); resp.StatusCode == 200 {
					went++
				}
			}
		}
		if went > 5 {
			t.Errorf("%d calls of an operation went, of a limit of 5", went)
		}
	})
	if out, _ := served.Say(t, nil, "status", "-admin", w.Serve.Admin); !strings.Contains(out, "tpd") {
		t.Errorf("status: %s", out)
	}
}
