package llmsim

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Any request gets a status, and its record an end.
func FuzzServeHTTP(f *testing.F) {
	for _, family := range families {
		for _, stream := range []bool{false, true} {
			a := asks(family, stream)
			f.Add(a.path, a.body)
		}
	}
	f.Add("/v1/embeddings", `{"model":"m","input":["a","b"],"dimensions":3,"encoding_format":"base64"}`)
	f.Add("/v1/messages/count_tokens", `{"model":"m","messages":[{"role":"user","content":[{"type":"tool_result","content":"x"}]}],"tools":[{"name":"t"}],"tool_choice":{"type":"any"}}`)
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":null}],"tools":[{"function":{"name":"t"}}],"tool_choice":"required","stream":true}`)
	f.Add("/model/a%2Fb/invoke", `{}`)
	f.Add("/v1beta/models/%zz:", ``)
	p := New(Config{Default: Model{Limits: Limits{Requests: Rate{N: 1 << 40}, Tokens: Rate{N: 1 << 40}}}, Keep: 10})
	f.Fuzz(func(t *testing.T, path, body string) {
		r, err := http.NewRequest(http.MethodPost, "http://sim/", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if r.URL.Path, r.URL.RawPath, _ = strings.Cut(path, "\x00"); r.URL.RawPath == "" {
			r.URL.Path, r.URL.RawQuery, _ = strings.Cut(path, "?")
		}
		r.Header = header("Authorization", "Bearer k", "X-Goog-Api-Key", "k", "X-Api-Key", "k", "Anthropic-Version", "1")
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		log := p.Log()
		if a := log[len(log)-1]; a.Outcome == Going || a.End == 0 || a.Status != w.Code {
			t.Errorf("%q %q: %d, %+v", path, body, w.Code, a)
		}
	})
}
