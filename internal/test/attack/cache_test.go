//go:build unix

package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// Callers with different cookies and tokens ask the same question. Each gets only its cached answer, without another caller's
// answer or cookie.
func TestAttackAnswersOfOthers(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", fmt.Sprint("__cf_bm=", n.Load()))
		w.Header().Set("Cache-Control", "private")
		fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"the answer %d"},"finish_reason":"stop"}]}`, n.Add(1))
	}))
	defer s.Close()
	w := served.Start(t, local+fmt.Sprintf(`
tokens: {ann: {env: ANN_TOKEN}, bob: {env: BOB_TOKEN}}
upstreams:
  gpt: {url: %q, llm: {family: openai, key_env: GPT_KEY, cache: true}}
  mine: {url: %q, llm: {family: openai, cache: true}}
%s`, s.URL, s.URL, bystander(t)), append([]string{"ANN_TOKEN=the-token-of-ann-and-nobody", "BOB_TOKEN=the-token-of-bob-and-nobody"}, keys...)...)
	const ann, bob = "X-Weir-Token: the-token-of-ann-and-nobody", "X-Weir-Token: the-token-of-bob-and-nobody"
	beside(t, w.Serve.Listen, func() {
		for _, upstream := range []string{"gpt", "mine"} {
			whose := make(map[string]int)
			for i, fields := range [][]string{
				{ann}, {bob}, {"Authorization: Bearer the-token-of-ann-and-nobody"}, {ann, "Cookie: session=1"}, {ann, "Cookie: session=2"}, {bob, "Cookie: session=1"}, {ann, "X-Auth-Token: 1"},
				{ann, "X-Auth-Token: 2"}, {ann, "X-Amz-Security-Token: 1"}, {ann, "X-Csrf: 1"}, {ann, "X-Tenant: 1"}, {ann, "X_Tenant: 1"},
			} {
				const marked = `{"metadata":{"weir_confidence":"1","weir_degraded":"false","weir_tier":"cached"},` // added by weir to cached answers
				for repeat := range 3 {
					fields := append([]string{fmt.Sprint("X-Request-Id: ", repeat), fmt.Sprint("X-Stainless-Retry-Count: ", repeat), "Content-Type: application/json"}, fields...)
					resp := say(t, w.Serve.Listen, request("POST", "/"+upstream+"/v1/chat/completions", w.Serve.Listen, `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]}`, fields...))
					got := strings.Replace(text(resp), marked, "{", 1)
					if repeat == 0 {
						if first, known := whose[got]; known && !(first == 0 && i == 2) { // the token of ann, in another place
							t.Errorf("%s: %q was given the answer of caller %d", upstream, fields, first)
						}
						whose[got] = i
						continue
					}
					if _, known := whose[got]; !known || resp.Header.Get("X-Weir-Cache") != "hit" || resp.Header.Get("Set-Cookie") != "" {
						t.Errorf("%s: %q, again: %s, cookie %q: %s", upstream, fields, resp.Header.Get("X-Weir-Cache"), resp.Header.Get("Set-Cookie"), got)
					}
				}
			}
		}
	}, ann)
}

// Callers ask another caller's question in other words, with similar questions enabled. Each gets only its cached answer,
// whether a token, a credential, a cookie or a header distinguishes them.
func TestAttackSimilarQuestionsOfOthers(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"the answer %d"},"finish_reason":"stop"}]}`, n.Add(1))
	}))
	defer s.Close()
	w := served.Start(t, local+fmt.Sprintf(`
tokens: {ann: {env: ANN_TOKEN}, bob: {env: BOB_TOKEN}}
callers: {keys: {tenant: "header:X-Tenant"}, limits: {user: off, user-day: off}}
upstreams:
  gpt: {url: %q, llm: {family: openai, key_env: GPT_KEY, cache: {similar: 80%%}}}
  mine: {url: %q, llm: {family: openai, cache: {similar: 80%%}}}
%s`, s.URL, s.URL, bystander(t)), append([]string{"ANN_TOKEN=the-token-of-ann-and-nobody", "BOB_TOKEN=the-token-of-bob-and-nobody"}, keys...)...)
	const ann, bob = "X-Weir-Token: the-token-of-ann-and-nobody", "X-Weir-Token: the-token-of-bob-and-nobody"
	beside(t, w.Serve.Listen, func() {
		for _, upstream := range []string{"gpt", "mine"} {
			whose := make(map[string]int)
			for i, fields := range [][]string{
				{ann}, {bob}, {ann, "Cookie: session=1"}, {ann, "Cookie: session=2"}, {bob, "Cookie: session=1"}, {ann, "X-Auth-Token: 1"}, {ann, "X-Auth-Token: 2"},
				{ann, "X-Tenant: 1"}, {ann, "X-Tenant: 2"}, {ann, "X-Csrf: 1"},
			} {
				for j, question := range []string{"How do I reset my password?", "how can I reset my password", "Please, how to reset my password"} {
					fields := append([]string{"Content-Type: application/json"}, fields...)
					resp := say(t, w.Serve.Listen, request("POST", "/"+upstream+"/v1/chat/completions", w.Serve.Listen, fmt.Sprintf(`{"model":"gpt-4o","messages":[{"role":"user","content":%q}]}`, question), fields...))
					_, got, _ := strings.Cut(text(resp), `"choices"`)
					if first, known := whose[got]; known && first != i {
						t.Errorf("%s: %q asks %q and was given the answer of caller %d", upstream, fields, question, first)
					}
					whose[got] = i
					if state := resp.Header.Get("X-Weir-Cache"); state != []string{"miss", "similar", "similar"}[j] {
						t.Errorf("%s: %q asks %q: %d %s", upstream, fields, question, resp.StatusCode, state)
					}
				}
			}
		}
	}, ann)
}
