package gateway_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/llm/gateway"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/outcome"
)

var estimator tokens.Estimator

// fuzzed returns a request and the exchange for it.
func fuzzed(t *testing.T, path, query, name, value string, body []byte, announced bool) (*http.Request, httpx.Exchange, *refuse.Facts) {
	t.Helper()
	d, err := gateway.New(gateway.Options{Name: "chat", Tokens: &estimator, Pass: announced, MaxBody: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{
		Method: http.MethodPost, URL: &url.URL{Scheme: "http", Host: "weir", Path: path, RawQuery: query}, Host: "weir",
		Header: http.Header{http.CanonicalHeaderKey(name): {value}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: -1,
	}
	if announced {
		r.ContentLength = int64(len(body))
	}
	r = r.WithContext(t.Context())
	x, f := d.Hear(r, path)
	return r, x, f
}

// FuzzHear checks that every request is accepted or refused with a client error. A forwarded body can be read to the end
// and restarted, the cost is not negative, and no memory stays reserved.
func FuzzHear(f *testing.F) {
	const chat = `{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}],"max_tokens":9}`
	for _, path := range []string{completions, "/v1/responses", "/v1/messages", "/v1beta/models/g:generateContent", "/model/m/converse", "/model/anthropic.m/invoke", "/%63hat", "/"} {
		f.Add(path, "", "Accept-Language", "de", []byte(chat), true)
	}
	f.Add(completions, "alt=sse", "Content-Encoding", "gzip", []byte("\x1f\x8b\x08\x00"), false)
	f.Add(completions, "key=x", "Content-Encoding", "br", []byte("br"), false)
	f.Add(completions, "", "X-Weir-Patience", "1e9s", []byte(`{"model":"m","stream":true,"n":9e99}`), true)
	f.Add(completions, "", "Authorization", "Bearer \xff", []byte("\xef\xbb\xbf{\"model\":\"\\ud800\"}"), false)
	f.Fuzz(func(t *testing.T, path, query, name, value string, body []byte, announced bool) {
		before, _, _ := buffers.Bodies.Use()
		r, x, fail := fuzzed(t, path, query, name, value, body, announced)
		if fail != nil && (fail.Status < 400 || fail.Status > 503 || fail.Message == "") {
			t.Errorf("refused with %+v", fail)
		}
		if fail == nil {
			var c weir.Call
			x.Describe(&c)
			for unit, n := range c.Cost {
				if n < 0 {
					t.Errorf("costs %d %s", n, unit)
				}
			}
			sent, err := io.ReadAll(r.Body)
			if err == nil && r.ContentLength >= 0 && int64(len(sent)) != r.ContentLength {
				t.Errorf("%d bytes are sent on as %d", len(sent), r.ContentLength)
			}
		}
		if e, ok := x.(httpx.Ender); ok {
			e.End()
		}
		if after, _, _ := buffers.Bodies.Use(); after != before {
			t.Errorf("%d bytes stay taken", after-before)
		}
	})
}

// FuzzAnswered checks that every response is judged without a panic. The bytes passed on are at most those received,
// plus the error that ends a broken stream. No memory stays reserved.
func FuzzAnswered(f *testing.F) {
	const said = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"}}]}\n\ndata: [DONE]\n\n"
	for i, kind := range []string{"text/event-stream", "application/json", "application/vnd.amazon.eventstream", "text/html", ""} {
		f.Add(uint8(i), kind, "X-Ratelimit-Reset-Tokens", "1e9h", []byte(said))
		f.Add(uint8(i), kind, "Retry-After", "-1", []byte(`{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":-1,"completion_tokens":9e99}}`))
	}
	paths := []string{completions, "/v1/responses", "/v1/messages", "/v1beta/models/g:streamGenerateContent", "/model/m/converse-stream", "/model/anthropic.m/invoke-with-response-stream"}
	f.Fuzz(func(t *testing.T, which uint8, kind, name, value string, body []byte) {
		before, _, _ := buffers.Bodies.Use()
		r, x, fail := fuzzed(t, paths[int(which)%len(paths)], "", "Accept", "*/*", []byte(`{"model":"m","stream":true,"messages":[],"contents":[]}`), true)
		if fail != nil {
			t.Fatalf("%+v", fail)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r = r.WithContext(ctx)
		if err := x.Attempt(r); err != nil {
			t.Fatal(err)
		}
		resp := &http.Response{StatusCode: 200, Request: r, ContentLength: -1, Body: io.NopCloser(bytes.NewReader(body)),
			Header: http.Header{"Content-Type": {kind}, http.CanonicalHeaderKey(name): {value}}}
		x.Answered(resp, outcome.Outcome{Class: outcome.OK})
		passed, _ := io.ReadAll(resp.Body)
		if len(passed) > len(body)+4096 {
			t.Errorf("%d bytes are passed on, of %d", len(passed), len(body))
		}
		_ = resp.Body.Close()
		x.(httpx.Ender).End()
		if after, _, _ := buffers.Bodies.Use(); after != before {
			t.Errorf("%d bytes stay taken", after-before)
		}
	})
}
