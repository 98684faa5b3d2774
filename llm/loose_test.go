package llm

import (
	"fmt"
	"testing"
)

// Case and white space are ignored only in users' questions. A change in instructions, names, tools, their results or
// any other part of the request gives another key.
func TestALooseKeyIgnoresCaseAndSpaces(t *testing.T) {
	ask := func(system, user, more string) *Request {
		return parse(t, chatPath, fmt.Sprintf(`{"model":"m","messages":[{"role":"system","content":%q},{"role":"user","content":%q}]%s}`, system, user, more))
	}
	first := ask("Be brief.", "What is a weir?", "")
	for _, same := range []string{"what is a weir?", "  What is\n\ta  WEIR? ", "What is a weir?"} {
		if q := ask("Be brief.", same, ""); q.LooseKey() != first.LooseKey() {
			t.Errorf("%q has another key", same)
		} else if same != "What is a weir?" && q.Key() == first.Key() {
			t.Errorf("%q has the same exact key", same)
		}
	}
	parts := parse(t, chatPath, `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"WHAT is a  weir?"}]}]}`)
	small := parse(t, chatPath, `{"model":"m","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"what is a weir?"}]}]}`)
	if parts.LooseKey() != small.LooseKey() {
		t.Error("parts of a message have other keys")
	}
	for name, q := range map[string]*Request{
		"another word":        ask("Be brief.", "What is a dam?", ""),
		"words run together":  ask("Be brief.", "Whatis a weir?", ""),
		"other instructions":  ask("be brief.", "What is a weir?", ""),
		"another limit":       ask("Be brief.", "What is a weir?", `,"max_tokens":5`),
		"another stop word":   ask("Be brief.", "What is a weir?", `,"stop":["A"]`),
		"a tool it may call":  ask("Be brief.", "What is a weir?", `,"tools":[{"type":"function","function":{"name":"f"}}]`),
		"a tool, other words": ask("Be brief.", "WHAT is a weir?", `,"tools":[{"type":"function","function":{"name":"f"}}]`),
	} {
		if q.LooseKey() == first.LooseKey() {
			t.Errorf("%s: the same key", name)
		}
	}
	tools := `,"tools":[{"type":"function","function":{"name":"f"}}]`
	if a, b := ask("", "What?", tools), ask("", "what?", tools); a.LooseKey() == b.LooseKey() {
		t.Error("with tools a question is loose")
	}
}
