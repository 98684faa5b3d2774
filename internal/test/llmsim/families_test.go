package llmsim

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/seed1158cd35/weir/llm"
)

// client returns an HTTP/1.1 client with separate connections.
func (s *Server) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
}

const echoed = "m heard: the question"

// said parses a response by hand: its text, its usage, and whether it ended well.
func said(t *testing.T, family llm.Family, stream bool, body []byte) (text string, in, out any, ended bool) {
	t.Helper()
	if !stream {
		b := string(body)
		switch family {
		case llm.OpenAI:
			return at(t, b, "choices", 0, "message", "content").(string), at(t, b, "usage", "prompt_tokens"), at(t, b, "usage", "completion_tokens"), at(t, b, "choices", 0, "finish_reason") == "stop"
		case llm.Responses:
			return at(t, b, "output", 0, "content", 0, "text").(string), at(t, b, "usage", "input_tokens"), at(t, b, "usage", "output_tokens"), at(t, b, "status") == "completed"
		case llm.Anthropic:
			return at(t, b, "content", 0, "text").(string), at(t, b, "usage", "input_tokens"), at(t, b, "usage", "output_tokens"), at(t, b, "stop_reason") == "end_turn"
		case llm.Gemini:
			return at(t, b, "candidates", 0, "content", "parts", 0, "text").(string), at(t, b, "usageMetadata", "promptTokenCount"), at(t, b, "usageMetadata", "candidatesTokenCount"), at(t, b, "candidates", 0, "finishReason") == "STOP"
		case llm.Converse:
			return at(t, b, "output", "message", "content", 0, "text").(string), at(t, b, "usage", "inputTokens"), at(t, b, "usage", "outputTokens"), at(t, b, "stopReason") == "end_turn"
		}
		return at(t, b, "generation").(string), at(t, b, "prompt_token_count"), at(t, b, "generation_token_count"), at(t, b, "stop_reason") == "stop"
	}
	if family == llm.Converse || family == llm.Invoke {
		return saidAWS(t, body)
	}
	names, data := sse(t, body)
	for i, d := range data {
		if d == "[DONE]" {
			return text, in, out, i == len(data)-1 && ended
		}
		if family != llm.OpenAI && family != llm.Gemini && at(t, d, "type") != names[i] {
			t.Errorf("event %q has type %v", names[i], at(t, d, "type"))
		}
		add := func(v any) { s, _ := v.(string); text += s }
		switch family {
		case llm.OpenAI:
			add(at(t, d, "choices", 0, "delta", "content"))
			ended = ended || at(t, d, "choices", 0, "finish_reason") == "stop"
			in, out = at(t, d, "usage", "prompt_tokens"), at(t, d, "usage", "completion_tokens")
		case llm.Responses:
			if at(t, d, "sequence_number") != float64(i) {
				t.Errorf("event %d: %s", i, d)
			}
			if names[i] == "response.output_text.delta" {
				add(at(t, d, "delta"))
			}
			ended = names[i] == "response.completed"
			in, out = at(t, d, "response", "usage", "input_tokens"), at(t, d, "response", "usage", "output_tokens")
		case llm.Anthropic:
			add(at(t, d, "delta", "text"))
			if names[i] == "message_start" {
				in = at(t, d, "message", "usage", "input_tokens")
			}
			if names[i] == "message_delta" {
				out = at(t, d, "usage", "output_tokens")
			}
			ended = names[i] == "message_stop"
		case llm.Gemini:
			add(at(t, d, "candidates", 0, "content", "parts", 0, "text"))
			in, out = at(t, d, "usageMetadata", "promptTokenCount"), at(t, d, "usageMetadata", "candidatesTokenCount")
			ended = at(t, d, "candidates", 0, "finishReason") == "STOP"
		}
	}
	return text, in, out, ended
}

func messages(t *testing.T, body []byte) (all []eventstream.Message) {
	t.Helper()
	in := bytes.NewReader(body)
	for in.Len() > 0 {
		m, err := eventstream.NewDecoder().Decode(in, nil)
		if err != nil {
			t.Fatalf("event stream: %v", err)
		}
		all = append(all, m)
	}
	return all
}

func saidAWS(t *testing.T, body []byte) (text string, in, out any, ended bool) {
	t.Helper()
	for _, m := range messages(t, body) {
		d := string(m.Payload)
		switch m.Headers.Get(":event-type").String() {
		case "contentBlockDelta":
			text += at(t, d, "delta", "text").(string)
		case "metadata":
			in, out, ended = at(t, d, "usage", "inputTokens"), at(t, d, "usage", "outputTokens"), true
		case "chunk":
			raw, err := base64.StdEncoding.DecodeString(at(t, d, "bytes").(string))
			if err != nil {
				t.Fatal(err)
			}
			text += at(t, string(raw), "generation").(string)
			in, out = at(t, string(raw), "prompt_token_count"), at(t, string(raw), "generation_token_count")
			ended = at(t, string(raw), "stop_reason") == "stop"
		}
	}
	return text, in, out, ended
}

func TestEveryFamilyAnswers(t *testing.T) {
	p, s := start(t, Config{})
	for _, family := range families {
		for _, stream := range []bool{false, true} {
			res, body, err := send(t, s.client(), s.URL, asks(family, stream))
			if err != nil || res.StatusCode != 200 {
				t.Fatalf("%s, stream %v: %v %s", family, stream, err, body)
			}
			text, in, out, ended := said(t, family, stream, body)
			if text != echoed || fmt.Sprint(in, out) != "6 6" || !ended {
				t.Errorf("%s, stream %v: %q, %v and %v tokens, ended %v in\n%s", family, stream, text, in, out, ended, body)
			}
		}
	}
	if v := p.Violations(); len(v) > 0 {
		t.Errorf("violations: %q", v)
	}
}

func TestOverHTTP2WithPriorKnowledge(t *testing.T) {
	_, s := start(t, Config{})
	var only http.Protocols
	only.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: &http.Transport{Protocols: &only}}
	defer client.CloseIdleConnections()
	res, body, err := send(t, client, s.URL, asks(llm.Converse, true))
	if err != nil || res.ProtoMajor != 2 {
		t.Fatalf("%v, %v", res, err)
	}
	if text, _, _, ended := said(t, llm.Converse, true, body); text != echoed || !ended {
		t.Errorf("%q, ended %v", text, ended)
	}
}

func TestLengthAndMaxTokens(t *testing.T) {
	_, s := start(t, Config{Default: Model{OutputTokens: 500, PerEvent: 7}})
	for family, reason := range map[llm.Family]string{llm.OpenAI: `"length"`, llm.Responses: `"max_output_tokens"`, llm.Anthropic: `"max_tokens"`, llm.Gemini: `"MAX_TOKENS"`, llm.Converse: `"max_tokens"`, llm.Invoke: `"length"`} {
		_, body, err := send(t, s.client(), s.URL, asks(family, false))
		if err != nil || !strings.Contains(string(body), reason) {
			t.Errorf("%s: %v, want %s in %s", family, err, reason, body)
		}
		if _, _, out, _ := said(t, family, false, body); fmt.Sprint(out) != "40" {
			t.Errorf("%s: %v tokens, want 40", family, out)
		}
	}
}

func TestGeminiStreamsAnArrayWithoutSSE(t *testing.T) {
	_, s := start(t, Config{})
	a := asks(llm.Gemini, true)
	a.path = strings.TrimSuffix(a.path, "?alt=sse")
	_, body, err := send(t, s.client(), s.URL, a)
	if err != nil || at(t, string(body), 0, "candidates", 0, "content", "role") != "model" {
		t.Errorf("%v %s", err, body)
	}
}

// Invalid requests are refused as the provider does, and recorded without their content.
func TestBadRequests(t *testing.T) {
	for name, x := range map[string]struct {
		family llm.Family
		change func(*ask)
		status int
		want   string
	}{
		"no key":           {llm.OpenAI, func(a *ask) { a.header.Del("Authorization") }, 401, `"invalid_request_error"`},
		"wrong place":      {llm.Anthropic, func(a *ask) { a.header.Del("X-Api-Key") }, 401, `"authentication_error"`},
		"no version":       {llm.Anthropic, func(a *ask) { a.header.Del("Anthropic-Version") }, 400, "anthropic-version"},
		"no max_tokens":    {llm.Anthropic, func(a *ask) { a.body = strings.Replace(a.body, "max_tokens", "most", 1) }, 400, "max_tokens: Field required"},
		"gemini bearer":    {llm.Gemini, func(a *ask) { a.header.Del("X-Goog-Api-Key"); a.header.Set("Authorization", "Bearer k") }, 403, "PERMISSION_DENIED"},
		"unsigned":         {llm.Converse, func(a *ask) { a.header.Del("Authorization") }, 403, "Missing Authentication Token"},
		"badly signed":     {llm.Converse, func(a *ask) { a.header.Set("Authorization", strings.Replace(sigv4, "bedrock", "s3", 1)) }, 403, "signature"},
		"another day":      {llm.Converse, func(a *ask) { a.header.Set("X-Amz-Date", "20000102T000000Z") }, 403, "signature"},
		"another body":     {llm.Invoke, func(a *ask) { a.header.Set("X-Amz-Content-Sha256", strings.Repeat("0", 64)) }, 403, "signature"},
		"not JSON":         {llm.OpenAI, func(a *ask) { a.body = "{" }, 400, "JSON"},
		"not JSON, gemini": {llm.Gemini, func(a *ask) { a.body = "x" }, 400, "INVALID_ARGUMENT"},
		"content type":     {llm.Anthropic, func(a *ask) { a.header.Set("Content-Type", "text/plain") }, 400, "application/json"},
		"stray options": {llm.OpenAI, func(a *ask) {
			a.body = strings.Replace(a.body, `"max_tokens":40`, `"stream_options":{"include_usage":true}`, 1)
		}, 400, "stream_options"},
		"no model":         {llm.Responses, func(a *ask) { a.body = strings.Replace(a.body, `"m"`, `"x"`, 1) }, 404, "model_not_found"},
		"no model, claude": {llm.Anthropic, func(a *ask) { a.body = strings.Replace(a.body, `"m"`, `"x"`, 1) }, 404, "not_found_error"},
		"no model, gemini": {llm.Gemini, func(a *ask) { a.path = "/v1beta/models/x:generateContent" }, 404, "NOT_FOUND"},
		"no model, aws":    {llm.Converse, func(a *ask) { a.path = "/model/x/converse" }, 400, "identifier is invalid"},
		"no path":          {llm.OpenAI, func(a *ask) { a.path = "/v1/nothing" }, 404, "Invalid URL"},
	} {
		p, s := start(t, Config{Models: map[string]Model{"m": {}}})
		a := asks(x.family, false)
		x.change(&a)
		res, body, err := send(t, s.client(), s.URL, a)
		if err != nil || res.StatusCode != x.status || !strings.Contains(string(body), x.want) {
			t.Errorf("%s: %v %v %s, want %d %s", name, err, res.StatusCode, body, x.status, x.want)
		}
		v := p.Violations()
		if len(v) == 0 && x.want != "Invalid URL" || strings.Contains(fmt.Sprint(v), "the question") {
			t.Errorf("%s: violations %q", name, v)
		}
		if got := p.Log()[0]; got.Outcome != Rejected || got.Granted {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestTracesOfAGatewayAreNoted(t *testing.T) {
	p, s := start(t, Config{})
	a := asks(llm.OpenAI, false)
	a.header.Set("X-Forwarded-For", "10.0.0.1")
	a.header.Set("X-Weir-Tier", "primary")
	if res, _, err := send(t, s.client(), s.URL, a); err != nil || res.StatusCode != 200 || len(p.Violations()) != 2 {
		t.Errorf("%v %v, violations %q", res, err, p.Violations())
	}
}
