package llmsim

import (
	"net/http"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/llm"
)

// with changes a request's body.
func (a ask) with(old, replaced string) ask {
	a.body = strings.Replace(a.body, old, replaced, 1)
	return a
}

func TestToolsAreCalled(t *testing.T) {
	_, s := start(t, Config{Answer: func(q Question) Reply {
		if q.MustCall == "" {
			return Reply{Text: "no tool"}
		}
		return Reply{Tool: &ToolCall{Name: q.MustCall, Arguments: `{"city":"Kyoto"}`}}
	}})
	ask := map[llm.Family]ask{
		llm.OpenAI:    asks(llm.OpenAI, false).with(`{"model"`, `{"tools":[{"type":"function","function":{"name":"weather"}}],"tool_choice":"required","model"`),
		llm.Responses: asks(llm.Responses, false).with(`{"model"`, `{"tools":[{"type":"function","name":"weather"}],"tool_choice":{"type":"function","name":"weather"},"model"`),
		llm.Anthropic: asks(llm.Anthropic, false).with(`{"model"`, `{"tools":[{"name":"weather","input_schema":{}}],"tool_choice":{"type":"tool","name":"weather"},"model"`),
		llm.Gemini:    asks(llm.Gemini, false).with(`{"contents"`, `{"tools":[{"functionDeclarations":[{"name":"weather"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},"contents"`),
		llm.Converse:  asks(llm.Converse, false).with(`{"messages"`, `{"toolConfig":{"tools":[{"toolSpec":{"name":"weather"}}],"toolChoice":{"any":{}}},"messages"`),
	}
	path := map[llm.Family][]any{
		llm.OpenAI:    {"choices", 0, "message", "tool_calls", 0, "function", "name"},
		llm.Responses: {"output", 0, "name"},
		llm.Anthropic: {"content", 0, "name"},
		llm.Gemini:    {"candidates", 0, "content", "parts", 0, "functionCall", "name"},
		llm.Converse:  {"output", "message", "content", 0, "toolUse", "name"},
	}
	for family, a := range ask {
		_, body, err := send(t, s.client(), s.URL, a)
		if err != nil || at(t, string(body), path[family]...) != "weather" || !strings.Contains(string(body), "Kyoto") {
			t.Errorf("%s: %v %s", family, err, body)
		}
	}
	for _, family := range []llm.Family{llm.OpenAI, llm.Responses, llm.Anthropic} { // these stream with the same body
		_, body, err := send(t, s.client(), s.URL, ask[family].with(`"model"`, `"stream":true,"model"`))
		if err != nil || !strings.Contains(string(body), `\"ci`) || !strings.Contains(string(body), "weather") {
			t.Errorf("%s, streamed: %v %s", family, err, body)
		}
	}
}

func TestListsOfModels(t *testing.T) {
	_, s := start(t, Config{Models: map[string]Model{"a": {}, "b": {}}})
	for _, x := range []struct {
		path   string
		header http.Header
		want   []any
		is     string
	}{
		{"/v1/models", header("Authorization", "Bearer k"), []any{"data", 1, "id"}, "b"},
		{"/v1/models/a", header("Authorization", "Bearer k"), []any{"id"}, "a"},
		{"/v1/models", header("X-Api-Key", "k", "Anthropic-Version", "2023-06-01"), []any{"last_id"}, "b"},
		{"/v1/models/a", header("X-Api-Key", "k", "Anthropic-Version", "2023-06-01"), []any{"display_name"}, "a"},
		{"/v1beta/models", header("X-Goog-Api-Key", "k"), []any{"models", 0, "name"}, "models/a"},
		{"/v1beta/models/b?key=k", header(), []any{"displayName"}, "b"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+x.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header = x.header
		res, err := s.client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		if err := res.Write(&b); err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(b.String(), "\r\n\r\n")
		if i := strings.IndexByte(body, '{'); i > 0 {
			body = body[i:]
		}
		body = body[:strings.LastIndexByte(body, '}')+1]
		if got := at(t, body, x.want...); got != x.is {
			t.Errorf("%s: %v, want %s in %s", x.path, got, x.is, body)
		}
	}
}

func TestEmbeddings(t *testing.T) {
	p, s := start(t, Config{Default: Model{Limits: Limits{Tokens: Rate{N: 10}}}})
	a := ask{"/v1/embeddings", `{"model":"m","input":["abcdefgh","x"],"dimensions":4}`, header("Authorization", "Bearer k")}
	_, body, err := send(t, s.client(), s.URL, a)
	if err != nil || at(t, string(body), "data", 1, "embedding", 3) == nil || at(t, string(body), "usage", "total_tokens") != 3.0 {
		t.Errorf("%v %s", err, body)
	}
	_, body, err = send(t, s.client(), s.URL, a.with(`"dimensions"`, `"encoding_format":"base64","dimensions"`))
	if text, _ := at(t, string(body), "data", 0, "embedding").(string); err != nil || len(text) != 24 {
		t.Errorf("%v %s", err, body)
	}
	if got := p.Log()[1]; got.Reserved != 3 || got.Output != 0 {
		t.Errorf("%+v, want 3 tokens", got)
	}
}

func TestTokensAreCounted(t *testing.T) {
	_, s := start(t, Config{})
	for family, path := range map[llm.Family]string{llm.Anthropic: "/v1/messages/count_tokens", llm.Gemini: "/v1beta/models/m:countTokens"} {
		a := asks(family, false)
		a.path = path
		_, body, err := send(t, s.client(), s.URL, a)
		if n := at(t, string(body), map[llm.Family]string{llm.Anthropic: "input_tokens", llm.Gemini: "totalTokens"}[family]); err != nil || n != 6.0 {
			t.Errorf("%s: %v %s", family, err, body)
		}
	}
}

func TestAReplyCanSayWhatItUsed(t *testing.T) {
	p, s := start(t, Config{Answer: func(Question) Reply { return Reply{Text: "abcdefgh", Input: 700, Output: 900} }})
	for _, stream := range []bool{false, true} {
		_, body, err := send(t, s.client(), s.URL, asks(llm.OpenAI, stream))
		if _, in, out, _ := said(t, llm.OpenAI, stream, body); err != nil || in != 700.0 || out != 900.0 {
			t.Errorf("%v %s", err, body)
		}
	}
	for _, a := range p.Log() {
		if a.Input != 700 || a.Output != 900 {
			t.Errorf("%+v", a)
		}
	}
}

func TestTextIsCutBetweenCharacters(t *testing.T) {
	for _, text := range []string{"", "a", "世界はひとつ", "né", "a\x80\x80\x80\x80\x80\x80", strings.Repeat("日", 100)} {
		for _, per := range []float64{1, 2.5, 4} {
			m := Model{BytesPer: per}.whole()
			pieces := cutUp(text, m)
			if strings.Join(pieces, "") != text {
				t.Errorf("%q became %q", text, pieces)
			}
			for _, most := range []int64{1, 3, 50} {
				cut, _ := lengthen(text, m, most)
				if count(cut, m) > most || utf8.ValidString(text) && !utf8.ValidString(cut) || !strings.HasPrefix(text, cut) {
					t.Errorf("%q cut to %d tokens: %q", text, most, cut)
				}
			}
		}
	}
}
