package llm

import (
	"fmt"
	"strings"
	"testing"
)

const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB" // 24 bytes

// prompts has one conversation in the format of each family.
var prompts = []struct {
	path, body, want, question string
}{
	{chatPath, `{"model":"m","messages":[{"role":"system","content":"be\n"},{"role":"user","content":"héé"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"find","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"found"},{"role":"user","content":[{"type":"text","text":"and?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + png + `","detail":"low"}},{"type":"text","text":"so"}]}],"tools":[{"a":1}]}`,
		"5 system 3 text 22 tools 9 numbers 0 [image 24 low]", "and?\nso"},
	{responsePath, `{"model":"m","instructions":"be","input":"hello"}`, "1 system 2 text 5 tools 0 numbers 0 []", "hello"},
	{responsePath, `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hello"},{"type":"input_image","image_url":"https://example.com/x.png","detail":"high"},{"type":"input_file","file_id":"file-1"}]},
		{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"done"}]}`,
		"3 system 0 text 12 tools 0 numbers 0 [image 0 high document 0 ]", "hello"},
	{messagePath, `{"model":"m","system":[{"type":"text","text":"be","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"one"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"sig"},{"type":"tool_use","id":"t","name":"f","input":{"a": 1}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"text","text":"ok"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + png + `"}}]}]}],"tools":[]}`,
		"3 system 2 text 16 tools 2 numbers 0 [image 24 ]", "one"},
	{messagePath, `{"model":"m","messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"all of it"},"title":"T"},{"type":"text","text":"sum up"}]}]}`,
		"1 system 0 text 16 tools 0 numbers 0 []", "sum up"},
	{geminiPath, `{"systemInstruction":{"parts":[{"text":"be"}]},"contents":[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"audio/wav","data":"` + png + `"}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]}]}`,
		"2 system 2 text 5 tools 0 numbers 0 [audio 24 ]", "hi"},
	{geminiPath, `{"contents":{"parts":{"text":"hi"}}}`, "1 system 0 text 2 tools 0 numbers 0 []", "hi"},
	{conversePath, `{"system":[{"text":"be"}],"messages":[{"role":"user","content":[{"text":"hi"},{"image":{"format":"png","source":{"bytes":"` + png + `"}}},{"document":{"format":"pdf","name":"d","source":{"s3Location":{"uri":"s3://b/k"}}}}]}]}`,
		"1 system 2 text 2 tools 0 numbers 0 [image 24  document 0 ]", "hi"},
	{novaPath, `{"schemaVersion":"messages-v1","messages":[{"role":"user","content":[{"text":"hi"}]}],"inferenceConfig":{"maxTokens":5}}`, "1 system 0 text 2 tools 0 numbers 0 []", "hi"},
	{"/model/amazon.titan/invoke", `{"inputText":"hi"}`, "1 system 0 text 2 tools 0 numbers 0 []", "hi"},
	{"/model/mine/invoke", `{"question":{"words":["hi","there"]}}`, "0 system 0 text 7 tools 0 numbers 0 []", ""},
	{"/model/mine/invoke", `free text`, "0 system 0 text 9 tools 0 numbers 0 []", ""},
	{"/v1/completions", `{"model":"m","prompt":"go on"}`, "1 system 0 text 5 tools 0 numbers 0 []", "go on"},
	{"/v1/embeddings", `{"model":"m","input":["one","two"]}`, "2 system 0 text 6 tools 0 numbers 0 []", ""},
	{"/v1/embeddings", `{"model":"m","input":[[1,2,3],[4]]}`, "2 system 0 text 0 tools 0 numbers 4 []", ""},
	{"/v1/embeddings", `{"model":"m","input":[1,2,3]}`, "1 system 0 text 0 tools 0 numbers 3 []", ""},
	{"/v1beta/models/e:embedContent", `{"content":{"parts":[{"text":"hi"}]}}`, "1 system 0 text 2 tools 0 numbers 0 []", ""},
}

func TestPromptAndQuestion(t *testing.T) {
	for _, c := range prompts {
		r := parse(t, c.path, c.body)
		p := r.Prompt()
		var media []string
		for _, m := range p.Media {
			media = append(media, fmt.Sprintf("%s %d %s", m.Kind, m.Bytes, m.Detail))
		}
		got := fmt.Sprintf("%d system %d text %d tools %d numbers %d [%s]", p.Messages, p.System, p.Text, p.Tools, p.Numbers, strings.Join(media, " "))
		if got != c.want {
			t.Errorf("%s %s:\n got %s\nwant %s", c.path, c.body, got, c.want)
		}
		if got := r.Question(); got != c.question {
			t.Errorf("%s %s: question %q, want %q", c.path, c.body, got, c.question)
		}
	}
}

func TestTextsReadAsTheyAreMeant(t *testing.T) {
	r := parse(t, chatPath, prompts[0].body)
	var got []string
	for part, s := range r.Texts() {
		got = append(got, fmt.Sprintf("%d:%s", part, s))
	}
	const want = "2:[{\"a\":1}]|1:be\n|0:héé|0:find|0:{}|0:found|0:and?|0:so"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("got %q, want %q", s, want)
	}
	for range r.Texts() {
		break // the loop may stop early
	}
}
