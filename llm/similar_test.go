package llm

import (
	"fmt"
	"testing"
)

// Similar accepts a question that is the only text of the last message. Two requests have the same rest if only their
// questions differ.
func TestSimilarIsForQuestionsThatStandAlone(t *testing.T) {
	const image = `{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}`
	ask := func(turns, more string) *Request {
		return parse(t, chatPath, fmt.Sprintf(`{"model":"m","messages":[%s]%s}`, turns, more))
	}
	user := func(text string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, text) }
	const system, said = `{"role":"system","content":"Be brief."},`, `{"role":"assistant","content":"A dam."},`
	first, question, ok := ask(system+user("What is a weir?"), "").Similar()
	if !ok || question != "What is a weir?" {
		t.Fatalf("got %q, %v", question, ok)
	}
	for name, q := range map[string]*Request{
		"another question": ask(system+user("What is a dam?"), ""),
		"a stream":         ask(system+user("What is a weir?"), `,"stream":true`),
	} {
		if rest, _, ok := q.Similar(); !ok || rest != first {
			t.Errorf("%s: has another rest, or none (%v)", name, ok)
		}
	}
	seen := map[[32]byte]string{first: "the first"}
	for name, q := range map[string]*Request{
		"other instructions":    ask(`{"role":"system","content":"be brief."},`+user("What is a weir?"), ""),
		"no instructions":       ask(user("What is a weir?"), ""),
		"a limit":               ask(system+user("What is a weir?"), `,"max_tokens":5`),
		"a temperature":         ask(system+user("What is a weir?"), `,"temperature":0`),
		"a stop word":           ask(system+user("What is a weir?"), `,"stop":["A"]`),
		"a form of the answer":  ask(system+user("What is a weir?"), `,"response_format":{"type":"json_object"}`),
		"a turn before it":      ask(system+user("What is a lock?")+","+said+user("What is a weir?"), ""),
		"another turn before":   ask(system+user("What is a lake?")+","+said+user("What is a weir?"), ""),
		"other case before":     ask(system+user("what is a lake?")+","+said+user("What is a weir?"), ""),
		"another answer before": ask(system+user("What is a lake?")+`,{"role":"assistant","content":"A sea."},`+user("What is a weir?"), ""),
		"in a part":             ask(system+`{"role":"user","content":[{"type":"text","text":"What is a weir?"}]}`, ""),
		"another model":         parse(t, chatPath, `{"model":"n","messages":[`+system+user("What is a weir?")+`]}`),
	} {
		rest, _, ok := q.Similar()
		if other, had := seen[rest]; !ok || had {
			t.Errorf("%s: ok %v, the same rest as %s", name, ok, other)
		}
		seen[rest] = name
	}
	const tools = `,"tools":[{"type":"function","function":{"name":"f"}}]`
	for name, q := range map[string]*Request{
		"with tools":              ask(user("What is a weir?"), tools),
		"with an image":           ask(`{"role":"user","content":[{"type":"text","text":"What is it?"},`+image+`]}`, ""),
		"an image before":         ask(`{"role":"user","content":[{"type":"text","text":"See"},`+image+`]},`+said+user("What is it?"), ""),
		"two texts":               ask(`{"role":"user","content":[{"type":"text","text":"What is a weir?"},{"type":"text","text":"And a dam?"}]}`, ""),
		"the model's turn":        ask(user("What is a weir?")+`,{"role":"assistant","content":"A"}`, ""),
		"a tool's result":         ask(user("What is a weir?")+`,{"role":"tool","tool_call_id":"1","content":"A dam"}`, ""),
		"no message":              ask("", ""),
		"prompts":                 parse(t, "/v1/completions", `{"model":"m","prompt":["What is a weir?","What is a dam?"]}`),
		"embeddings":              parse(t, "/v1/embeddings", `{"model":"m","input":"What is a weir?"}`),
		"a response gone on from": parse(t, responsePath, `{"model":"m","input":"What is a weir?","previous_response_id":"r"}`),
		"a result of Anthropic's": parse(t, messagePath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"A dam"}]}]}]}`),
		"a document":              parse(t, messagePath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"A dam"}},{"type":"text","text":"What is it?"}]}]}`),
	} {
		if _, question, ok := q.Similar(); ok {
			t.Errorf("%s: %q stands alone", name, question)
		}
	}
	for name, q := range map[string]*Request{
		"a response": parse(t, responsePath, `{"model":"m","input":"What is a weir?"}`),
		"messages":   parse(t, messagePath, `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"What is a weir?"}]}`),
		"Gemini":     parse(t, geminiPath, `{"contents":[{"parts":[{"text":"What is a weir?"}]}]}`),
		"Converse":   parse(t, conversePath, `{"messages":[{"role":"user","content":[{"text":"What is a weir?"}]}]}`),
	} {
		if _, question, ok := q.Similar(); !ok || question != "What is a weir?" {
			t.Errorf("%s: %q, %v", name, question, ok)
		}
	}
}
