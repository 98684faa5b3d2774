package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A lax is a provider that accepts model calls with every spelling of the path and every method.
type lax struct {
	url   string
	mu    sync.Mutex
	paths []string
}

func newLax(t *testing.T) *lax {
	l := &lax{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		l.mu.Lock()
		l.paths = append(l.paths, r.Method+" "+r.RequestURI)
		l.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":100,"total_tokens":200}}`)
	}))
	t.Cleanup(s.Close)
	l.url = s.URL
	return l
}

func (l *lax) got() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := l.paths
	l.paths = nil
	return all
}

// The tokens of a call are counted for every spelling of its path and every method, and the recognized path is sent.
func TestTokensAreCountedHoweverThePathIsWritten(t *testing.T) {
	l := newLax(t)
	at, _ := url.Parse(l.url)
	d, err := gateway.New(gateway.Options{Name: "chat", Family: "openai", Tokens: new(tokens.Estimator)})
	if err != nil {
		t.Fatal(err)
	}
	for _, closed := range []bool{false, true} {
		policy := quick()
		policy.Limits = []limit.Limit{{Name: "tpm", Unit: "tokens", Rate: bucket.Rate{Amount: 1_000_000, Per: 8760 * time.Hour, Burst: 1_000_000}}}
		p, err := proxy.New([]proxy.Upstream{{Name: "chat", URL: at, Policy: policy, Dialect: d, Closed: closed}}, weir.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var calls sync.WaitGroup
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			calls.Add(1)
			defer calls.Done()
			p.ServeHTTP(w, r)
		}))
		left := func() int64 { return p.Upstreams()["chat"].Look(1).Limits[0].Level.Left }
		ask := func(method, path, body string, fields ...string) int {
			r, err := http.NewRequest(method, s.URL+"/", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.URL.Opaque = "/chat" + path
			r.Header.Set("Content-Type", "application/json")
			for _, f := range fields {
				name, value, _ := strings.Cut(f, ": ")
				r.Header.Set(name, value)
			}
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			calls.Wait() // waits until the call is settled
			return resp.StatusCode
		}
		const body = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`
		if status := ask("post", completions, body); status != 400 || len(l.got()) != 0 {
			t.Errorf("post in small letters: answered %d", status)
		}
		for _, path := range []string{
			completions, "/v1/chat/%63ompletions", completions + "/", completions + ";x=1", "//v1//chat//completions", "/v1/chat%2fcompletions", "/V1/chat/Completions", "/v1/chat/completions%20", "/v1/chat/%2563ompletions",
		} {
			for _, method := range []string{"POST", "PUT", "PATCH", "QUERY"} {
				before := left()
				if status := ask(method, path, body); status != 200 {
					t.Errorf("%s %s: answered %d", method, path, status)
				}
				if took := before - left(); took != 200 {
					t.Errorf("%s %s: took %d tokens, want 200", method, path, took)
				}
				if got := l.got(); len(got) != 1 || got[0] != method+" "+completions && got[0] != method+" "+path {
					t.Errorf("%s %s: sent %v", method, path, got)
				}
			}
		}
		before := left()
		if status := ask("GET", completions+"?limit=1", ""); status != 200 || left() != before {
			t.Errorf("a list of them: answered %d, took %d tokens", status, before-left())
		}
		if status := ask("GET", completions, "", "Upgrade: websocket", "Connection: Upgrade"); status != 426 {
			t.Errorf("a socket: answered %d", status)
		}
		l.got()
		want := map[bool]int{false: 200, true: 403}[closed]
		for _, path := range []string{"/v1/models", "/v1/files", "/v1/batches"} {
			if status := ask("POST", path, "{}"); status != want || (len(l.got()) == 0) != closed {
				t.Errorf("closed %v: %s: answered %d, want %d", closed, path, status, want)
			}
		}
		s.Close()
	}
}

// The path in the upstream's URL is part of the recognized path, so the call costs tokens. A model has one limit for all
// spellings of its name.
func TestBehindThePathOfItsURL(t *testing.T) {
	p := provider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"type":"message","role":"assistant","content":[{"type":"text","text":"hi"}],"usage":{"input_tokens":50,"output_tokens":50}}`)
	})
	policy := quick()
	policy.MaxWait = -1
	policy.Limits = []limit.Limit{{Name: "one", Scope: gateway.Model, Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}, Operations: []string{"messages"}}}
	at, _ := url.Parse(p.URL + "/v1")
	b := before(t, gateway.Options{Family: llm.Anthropic}, policy, at)
	for i, model := range []string{"claude", "Claude", " CLAUDE"} {
		a := b.post("/messages", `{"model":"`+model+`","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`)
		if want := []int{200, 429, 429}[i]; a.StatusCode != want {
			t.Errorf("%s: answered %s, want %d: %s", model, a.Status, want, a.body)
		}
	}
}
