package llm

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

func TestForNamesAnotherModelAndNothingElse(t *testing.T) {
	for _, c := range []struct{ path, body, model, wantPath, wantBody string }{
		{chatPath, "{ \"x\":1.0,\n\"model\" : \"a\" ,\"y\":[ ]}", "b", chatPath, "{ \"x\":1.0,\n\"model\" : \"b\" ,\"y\":[ ]}"},
		{chatPath, `{"model":"a\u0062"}`, `x"y`, chatPath, `{"model":"x\"y"}`},
		{chatPath, `{"model":"a"}`, "", chatPath, `{"model":"a"}`},
		{chatPath, `{"model":"\u0061"}`, "a", chatPath, `{"model":"\u0061"}`},
		{"/openai/deployments/a/chat/completions?api-version=1", `{"n":1}`, "b c", "/openai/deployments/b%20c/chat/completions", `{"n":1}`},
		{"/openai/deployments/a/chat/completions", `{"model":"gpt","n":1}`, "b", "/openai/deployments/b/chat/completions", `{"model":"b","n":1}`},
		{geminiPath + "?alt=sse", `{"contents":[]}`, "gemini-y", "/v1beta/models/gemini-y:generateContent", `{"contents":[]}`},
		{geminiPath, `{}`, "models/gemini-y", "/v1beta/models/gemini-y:generateContent", `{}`},
		{conversePath, `{}`, "arn:aws:bedrock:us-east-1:1:inference-profile/us.x-v1:0", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x-v1%3A0/converse", `{}`},
		{chatPath, `{"n":1}`, "b", chatPath, `{"model":"b","n":1}`},
		{chatPath, `{}`, "b", chatPath, `{"model":"b"}`},
		{chatPath, `{"n":1,"model":null}`, "b", chatPath, `{"n":1,"model":"b"}`},
		{messagePath, `{"model":""}`, "b", messagePath, `{"model":"b"}`},
		{responsePath, `{"prompt":{"id":"p"}}`, "b", responsePath, `{"prompt":{"id":"p"}}`},
		{"/model/a%3A0/invoke", `{"prompt":"a:0"}`, "b b", "/model/b%20b/invoke", `{"prompt":"a:0"}`},
	} {
		path, query, body := parse(t, c.path, c.body).For(c.model)
		wantQuery := ""
		if i := strings.IndexByte(c.path, '?'); i >= 0 {
			wantQuery = c.path[i+1:]
		}
		if path != c.wantPath || query != wantQuery || string(body) != c.wantBody {
			t.Errorf("%s %s for %q: got %s?%s %s", c.path, c.body, c.model, path, query, body)
		}
	}
}

func TestAskUsageAddsNothingElse(t *testing.T) {
	const yes = `"include_usage":true`
	for _, c := range []struct{ body, want string }{
		{`{"model":"m","stream":true}`, `{"stream_options":{` + yes + `},"model":"m","stream":true}`},
		{"\n{ \"model\":\"m\",\"stream\":true} ", "\n{\"stream_options\":{" + yes + "}, \"model\":\"m\",\"stream\":true} "},
		{`{"stream":true,"stream_options":{},"model":"m"}`, `{"stream":true,"stream_options":{` + yes + `},"model":"m"}`},
		{`{"stream":true,"stream_options":{"include_obfuscation":false},"model":"m"}`, `{"stream":true,"stream_options":{` + yes + `,"include_obfuscation":false},"model":"m"}`},
		{`{"stream":true,"stream_options":{"include_usage": false },"model":"m"}`, `{"stream":true,"stream_options":{"include_usage": true },"model":"m"}`},
		{`{"stream":true,"stream_options":{"include_usage":null},"model":"m"}`, `{"stream":true,"stream_options":{"include_usage":true},"model":"m"}`},
		{`{"stream":true,"stream_options":{"include_usage":"0"},"model":"m"}`, `{"stream":true,"stream_options":{"include_usage":true},"model":"m"}`},
		{`{"stream":true,"stream_options":null,"model":"m"}`, `{"stream":true,"stream_options":{` + yes + `},"model":"m"}`},
	} {
		r := parse(t, chatPath, c.body)
		got := string(r.AskUsage())
		if got != c.want || !r.AddedUsage || r.ReportsUsage || string(r.AskUsage()) != got || string(r.Body()) != got {
			t.Errorf("%s:\n got %s (added %v)\nwant %s", c.body, got, r.AddedUsage, c.want)
		}
		want := strings.Replace(c.want, `"m"`, `"other"`, 1)
		if _, _, body := r.For("other"); string(body) != want {
			t.Errorf("%s for another model:\n got %s\nwant %s", c.body, body, want)
		}
	}
	for _, c := range []struct{ path, body string }{
		{chatPath, `{"model":"m"}`}, {chatPath, `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`},
		{responsePath, `{"model":"m","stream":true}`}, {messagePath, `{"model":"m","stream":true}`}, {"/v1/embeddings", `{"model":"m","stream":true}`},
	} {
		if r := parse(t, c.path, c.body); string(r.AskUsage()) != c.body || r.AddedUsage {
			t.Errorf("%s %s is changed", c.path, c.body)
		}
	}
}

// For changes only the model, for every spelling of a body.
func TestForKeepsAllElse(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for i := range 2000 {
		v := value{kind: 5, names: []string{"model", "stream", "v"}, members: []value{{kind: 2, text: "mé\n"}, {kind: 0, text: "true"}, randomValue(r, 0)}}
		var b strings.Builder
		v.write(r, &b)
		q := parse(t, chatPath, b.String())
		if i%2 == 0 {
			q.AskUsage()
		}
		_, _, body := q.For("new\"\u2028日")
		v.members[0].text = "new\"\u2028日"
		var want strings.Builder
		v.write(r, &want)
		got, err := q.Route.Parse(body)
		if err != nil || got.Key() != parse(t, chatPath, want.String()).Key() || got.ReportsUsage != (i%2 == 0) {
			t.Fatalf("seed %d, case %d: %s\nbecomes %s (%v)", seed, i, b.String(), body, err)
		}
	}
}

func FuzzRecognizeParseFor(f *testing.F) {
	for _, path := range []string{chatPath, responsePath, messagePath, geminiPath, conversePath, novaPath, "/openai/deployments/d/chat/completions"} {
		f.Add(path, "alt=sse", []byte(`{"model":"m","stream":true,"stream_options":{"include_usage":null},"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},"x"]}]}`), "other/model:1")
		f.Add(path, "", []byte(`{"model":"m","system":[{"text":"s"}],"input":[{"type":"message","content":[{"type":"input_text","text":"t"}]}],"contents":{"parts":{"inlineData":{"mimeType":"audio/wav","data":"AAAA"}}}}`), "é ?#%")
	}
	f.Fuzz(func(t *testing.T, path, query string, body []byte, model string) {
		route, ok := Recognize(http.MethodPost, path, query)
		if !ok {
			route = Default(OpenAI)
		}
		r, err := route.Parse(body)
		if err != nil {
			return
		}
		if p := r.Prompt(); p.Bytes() > 3*int64(len(body)) || len(p.Media) > len(body) {
			t.Fatalf("the prompt is larger than its body: %+v", p)
		}
		var texts int64
		for _, s := range r.Texts() {
			texts += int64(len(s))
		}
		if p := r.Prompt(); texts != p.Bytes() {
			t.Fatalf("texts have %d bytes, the prompt counts %d", texts, p.Bytes())
		}
		_ = r.Question()
		if h, b := r.Answer(Answer{Text: model, Meta: map[string]string{model: path}}); h.Get("Content-Type") == "application/json" && !json.Valid(b) {
			t.Fatalf("answer %q", b)
		}
		r.AskUsage()
		checkFor(t, r, model, ok)
	})
}

// checkFor changes the model of a request and then changes it back.
func checkFor(t *testing.T, r *Request, model string, known bool) {
	if !known || model == "" || strings.HasPrefix(model, "models/") || strings.ToValidUTF8(model, "") != model {
		return
	}
	path, query, body := r.For(model)
	route, ok := Recognize(http.MethodPost, path, query)
	if !ok {
		t.Fatalf("%q for %q: %q is not recognised", r.path, model, path)
	}
	q, err := route.Parse(body)
	if err != nil {
		t.Fatalf("%q for %q: %v", body, model, err)
	}
	if r.from < r.to || r.at[fModel] != 0 {
		if q.Model != model {
			t.Fatalf("%q %q for %q: the model is %q", path, body, model, q.Model)
		}
	}
	if _, _, back := q.For(r.Model); r.from == r.to && bytes.Equal(appendString(nil, r.Model), r.doc.raw(r.doc.member(0, "model"))) && !bytes.Equal(back, r.Body()) {
		t.Fatalf("there %q and back %q", body, back)
	}
}

// Requests without a model and with several prompts are accepted, and all prompts are counted. A server may have only
// one model, and servers differ in which prompt they use.
func TestWhatServersOfOneModelAreAsked(t *testing.T) {
	for body, want := range map[string]int64{
		`{"messages":[{"role":"user","content":"12345"}]}`: 5, `{"model":null,"prompt":"12345"}`: 5, `{"model":"","input":"12345"}`: 5, `{"prompt":"12345","input":"678"}`: 8,
		`{"messages":[{"role":"user","content":"12345"}],"prompt":"678","input":["90"]}`: 10,
	} {
		r := parse(t, chatPath, body)
		if got := r.Prompt().Text; got != want || !r.Nameless() {
			t.Errorf("%s: %d bytes, nameless %v; want %d", body, got, r.Nameless(), want)
		}
	}
}
