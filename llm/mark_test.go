package llm

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/llm/frame"
)

// Mark writes metadata to the same place as Answer and changes nothing else.
func TestMarkedAnswersAreThoseThatWereMarked(t *testing.T) {
	meta := map[string]string{"weir_tier": "cached", "weir_confidence": "0.5"}
	for _, tt := range []struct {
		path, body string
		room       bool
	}{
		{"/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}]}`, true},
		{"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`, true},
		{"/v1/completions", `{"model":"m","prompt":"hi"}`, false},
		{"/v1/completions", `{"model":"m","stream":true,"prompt":"hi"}`, false},
		{"/v1/responses", `{"model":"m","input":"hi"}`, true},
		{"/v1/responses", `{"model":"m","stream":true,"input":"hi"}`, true},
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`, true},
		{"/v1/messages", `{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, true},
		{"/model/m/converse", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, true},
		{"/model/m/converse-stream", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`, true},
		{"/v1beta/models/m:generateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, false},
		{"/v1beta/models/m:streamGenerateContent", `{"contents":[{"parts":[{"text":"hi"}]}]}`, false},
	} {
		q := parse(t, tt.path, tt.body)
		as := Answer{Text: strings.Repeat("much ", 2000), Model: "m", ID: "1", Created: time.Unix(1700000000, 0)}
		_, plain := q.Answer(as)
		as.Meta = meta
		_, want := q.Answer(as)
		got := q.Mark(plain, meta)
		if string(plain) == string(got) == tt.room {
			t.Errorf("%s: marked %v, want %v", q.Operation, !tt.room, tt.room)
		}
		if !reflect.DeepEqual(values(got), values(want)) {
			t.Errorf("%s: marked it is\n%s\nwant\n%s", q.Operation, got, want)
		}
		if again := q.Mark(got, map[string]string{"more": "1"}); tt.room && len(again) <= len(got) {
			t.Errorf("%s: meta data is not added to that which is there", q.Operation)
		}
		for _, broken := range []string{"", "[1]", `{"metadata":1,"additionalModelResponseFields":2}`, `{"metadata":`, "data: x\n\n"} {
			if got := q.Mark([]byte(broken), meta); string(got) != broken {
				t.Errorf("%s: %q is marked: %s", q.Operation, broken, got)
			}
		}
	}
}

// values returns the parsed JSON of each event of a body, because the order of members is not fixed.
func values(body []byte) (all []any) {
	texts := [][]byte{body}
	switch {
	case strings.Contains(string(body), "data: "):
		texts = nil
		s := frame.SSE{Max: len(body)}
		s.Feed(body)
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			e := frame.ParseEvent(f.Raw, nil)
			all = append(all, string(e.Name))
			texts = append(texts, e.Data)
		}
	case !json.Valid(body):
		texts = nil
		s := frame.Messages{Max: len(body)}
		s.Feed(body)
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			m, err := frame.ParseMessage(f.Raw)
			all = append(all, string(m.Type), string(m.Event), err)
			texts = append(texts, m.Payload)
		}
	}
	for _, text := range texts {
		var v any
		if json.Unmarshal(text, &v) != nil {
			v = string(text)
		}
		all = append(all, v)
	}
	return all
}
