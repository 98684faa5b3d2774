package mcpdialect

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Any body is read without a panic. An accepted message has the method, name and ID that encoding/json finds, and a refusal is
// JSON with that ID.
func FuzzMessagesOf(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a\u0062","arguments":{"name":"]}\\\""}}}`, ` [ {"method":"ping" , "id" : "x" } , {} ] `,
		`{"params":{"uri":"file:///a"},"method":"resources/read","id":-1.5e9}`, `{"id":null}`, `[]`, `"x"`, `{"method":"tools/call","Params":{}}`, `{"a":[1,{"b":true}],"id":7 }`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		all, batch, err := messagesOf(body)
		var want struct {
			Method *string
			ID     json.RawMessage
			Params json.RawMessage
		}
		if err == nil && !batch && json.Unmarshal(body, &want) == nil {
			m := all[0]
			var params struct{ Name, URI string }
			_ = json.Unmarshal(want.Params, &params)
			name := map[string]string{"name": params.Name, "uri": params.URI}[m.nameField()]
			if want.Method != nil && (m.method != *want.Method || m.name != name) || string(m.id) != string(want.ID) {
				t.Errorf("%s: got %q %q %s, want %q %q %s", body, m.method, m.name, m.id, *want.Method, name, want.ID)
			}
		}
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		x, _ := New().Hear(r, "/")
		w := httptest.NewRecorder()
		x.Refuse(w, &refuse.Facts{Status: http.StatusTooManyRequests, Code: refuse.RateLimitExceeded, Reason: "rate_limited", Wait: time.Second})
		if !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s is refused with %s", body, w.Body)
		}
		x.(*exchange).End()
	})
}

// longest is a limit with the longest text.
var longest = limit.Limit{Name: "l", Unit: "output_tokens", Scope: Tool, Shape: limit.Rolling, Rate: bucket.Rate{Amount: 1 << 40, Per: 8783*time.Hour + 59*time.Minute + 59*time.Second + 999*time.Millisecond}}

// Texts stay below 300 characters, however long names are.
func TestTextIsShort(t *testing.T) {
	x := &exchange{message: message{method: toolCall, name: strings.Repeat("ü", 1000)}, post: true}
	for _, wait := range []time.Duration{time.Second, time.Hour} {
		for _, endless := range []bool{false, true} {
			f := &refuse.Facts{Reason: "rate_limited", Wait: wait, Endless: endless, Limits: make([]refuse.Limit, 1)}
			f.Limits[0].Full, f.Limits[0].Left = 1<<40, 1
			*f.Limits[0].Rule() = longest
			for _, f := range []*refuse.Facts{f, {Reason: "circuit_open", Wait: wait, Endless: endless}} {
				if text := x.text(f, time.Now()); utf8.RuneCountInString(text) >= 300 {
					t.Errorf("%d characters: %s", len(text), text)
				}
			}
		}
	}
}
