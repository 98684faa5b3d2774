package websocket

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestRoutesOfMessages(t *testing.T) {
	for _, c := range []struct{ msg, path, want string }{
		{`{"action":"send"}`, "action", "send"},
		{` {"a": [1, {"action":"x"}, "]}"], "action" : "send" , "z": null}`, "action", "send"},
		{`{"text":"say \"action\":\"no\" \\","action":"send"}`, "action", "send"},
		{`{"action":"se\u006ed"}`, "action", "send"},
		{`{"acti\u006fn":"send"}`, "action", "send"},
		{`{"Action":"send"}`, "action", "send"},
		{`{"action":5}`, "action", "5"},
		{`{"action":true}`, "action", "true"},
		{`{"data":{"kind":"join","x":{}},"kind":"no"}`, "data.kind", "join"},
		{`{"data":"{\"kind\":\"join\"}"}`, "data.kind", ""},
		{`{"data":[{"kind":"join"}]}`, "data.kind", ""},
		{`{"action":"send","action":"join"}`, "action", "twice"},
		{`{"action":"send","ACTION":"join"}`, "action", "twice"},
		{`{"action":"send","acti\u006fn":"join"}`, "action", "twice"},
		{`{"ac\u017fion":"send"}`, "action", ""},
		{`{"data":{"kind":"a"},"data":{"kind":"b"}}`, "data.kind", "twice"},
		{`{"data":{"kind":"a","kind":"b"}}`, "data.kind", "twice"},
		{`{"\u017fend":1,"send":2}`, "send", "twice"}, // a long s, which equals s if case is ignored
		{`[{"action":"send"}]`, "action", ""},
		{`"action"`, "action", ""},
		{``, "action", ""},
		{`{`, "action", ""},
		{`{"`, "action", ""},
		{`{"action`, "action", ""},
		{`{"action":`, "action", ""},
		{`{"action":"se`, "action", ""},
		{`{"x":{"action":"send"`, "action", ""},
		{`hello`, "action", ""},
	} {
		got, twice := find([]byte(c.msg), strings.Split(c.path, "."))
		if twice && c.want == "twice" {
			continue
		}
		if string(got) != c.want || twice {
			t.Errorf("%s of %s: %q, %t; want %q", c.path, c.msg, got, twice, c.want)
		}
	}
}

// If any parser accepts the text as an object, the route is the value that a parser finds, for the first of two equal
// names or the last.
func FuzzRoutes(f *testing.F) {
	for _, msg := range []string{`{"action":"send"}`, `{"a":[{}],"action":"x","Action":{}}`, `{"data":{"action":"\ud83d\ude00"}}`, "{\"action\":\"\xff\"}", `{"a\\":1,"action":"\\"}`} {
		f.Add([]byte(msg))
	}
	f.Fuzz(func(t *testing.T, msg []byte) {
		got, twice := find(msg, []string{"action"})
		var all struct{ Action json.RawMessage }
		if twice || json.Unmarshal(msg, &all) != nil {
			return
		}
		var text string
		want := strings.TrimSpace(string(all.Action))
		if json.Unmarshal(all.Action, &text) == nil && want != "null" {
			want = text
		}
		if string(got) != want && strings.ToValidUTF8(string(got), "\ufffd") != strings.ToValidUTF8(want, "\ufffd") {
			t.Errorf("%q: %q, and a reader finds %q", msg, got, want)
		}
	})
}

func BenchmarkRoute(b *testing.B) {
	msg := []byte(`{"action":"sendMessage","to":"room-17","text":"` + strings.Repeat("x", 150) + `"}`)
	path := []string{"action"}
	b.ReportAllocs()
	for b.Loop() {
		find(msg, path)
	}
}
