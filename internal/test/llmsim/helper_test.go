package llmsim

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/llm"
)

// start serves a provider until the test ends.
func start(t testing.TB, c Config) (*Provider, *Server) {
	t.Helper()
	p := New(c)
	s, err := p.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return p, s
}

// inMemory returns a client of a provider without a network.
func inMemory(t testing.TB, h http.Handler) *http.Client {
	n := memnet.New()
	t.Cleanup(n.Close)
	n.Serve("sim", h)
	return &http.Client{Transport: n.Transport()}
}

// An ask is a request of one family.
type ask struct {
	path, body string
	header     http.Header
}

func header(kv ...string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	for i := 0; i < len(kv); i += 2 {
		h.Set(kv[i], kv[i+1])
	}
	return h
}

const sigv4 = "AWS4-HMAC-SHA256 Credential=AKIDSIM/20000101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature=" +
	"0000000000000000000000000000000000000000000000000000000000000000"

// asks returns valid requests, plain and streamed, for the model m, with at most 40 output tokens.
func asks(family llm.Family, stream bool) ask {
	more, plain := `,"stream":true`, "converse"
	if !stream {
		more = ""
	}
	text := "the question"
	switch family {
	case llm.OpenAI:
		if stream {
			more += `,"stream_options":{"include_usage":true}`
		}
		return ask{"/v1/chat/completions", `{"model":"m","max_tokens":40,"messages":[{"role":"user","content":"` + text + `"}]` + more + `}`, header("Authorization", "Bearer k")}
	case llm.Responses:
		return ask{"/v1/responses", `{"model":"m","max_output_tokens":40,"input":"` + text + `"` + more + `}`, header("Authorization", "Bearer k")}
	case llm.Anthropic:
		return ask{"/v1/messages", `{"model":"m","max_tokens":40,"messages":[{"role":"user","content":"` + text + `"}]` + more + `}`, header("X-Api-Key", "k", "Anthropic-Version", "2023-06-01")}
	case llm.Gemini:
		path := "/v1beta/models/m:generateContent"
		if stream {
			path = "/v1beta/models/m:streamGenerateContent?alt=sse"
		}
		return ask{path, `{"contents":[{"role":"user","parts":[{"text":"` + text + `"}]}],"generationConfig":{"maxOutputTokens":40}}`, header("X-Goog-Api-Key", "k")}
	case llm.Invoke:
		plain = "invoke"
		if stream {
			plain = "invoke-with-response-stream"
		}
		return ask{"/model/m/" + plain, `{"prompt":"` + text + `","max_gen_len":40}`, header("Authorization", sigv4, "X-Amz-Date", "20000101T000000Z")}
	}
	if stream {
		plain = "converse-stream"
	}
	return ask{"/model/m/" + plain, `{"messages":[{"role":"user","content":[{"text":"` + text + `"}]}],"inferenceConfig":{"maxTokens":40}}`, header("Authorization", sigv4, "X-Amz-Date", "20000101T000000Z")}
}

var families = []llm.Family{llm.OpenAI, llm.Responses, llm.Anthropic, llm.Gemini, llm.Converse, llm.Invoke}

func (a ask) request(ctx context.Context, url string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url+a.path, strings.NewReader(a.body))
	if err != nil {
		panic(err)
	}
	r.Header = a.header.Clone()
	return r
}

// send sends a request and reads the response as far as it arrives.
func send(t testing.TB, client *http.Client, url string, a ask) (*http.Response, []byte, error) {
	t.Helper()
	res, err := client.Do(a.request(t.Context(), url))
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return res, body, err
}

// sse reads server-sent events; every event has one line of data.
func sse(t testing.TB, body []byte) (names, data []string) {
	t.Helper()
	name := ""
	in := bufio.NewScanner(bytes.NewReader(body))
	for in.Scan() {
		line := strings.TrimSuffix(in.Text(), "\r")
		if n, ok := strings.CutPrefix(line, "event: "); ok {
			name = n
		}
		if d, ok := strings.CutPrefix(line, "data: "); ok {
			names, data, name = append(names, name), append(data, d), ""
		}
	}
	return names, data
}

// at finds a value in JSON by keys and indices.
func at(t testing.TB, raw string, path ...any) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(raw), &v); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	for _, k := range path {
		switch k := k.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[k]
		case int:
			l, _ := v.([]any)
			if k >= len(l) {
				return nil
			}
			v = l[k]
		}
	}
	return v
}
