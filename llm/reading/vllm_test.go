package reading

import (
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/outcome"
)

// vLLM reports an error in a stream as an object "error" without a member error, and ends the stream as if it were complete.
func TestObjectErrorInStream(t *testing.T) {
	const chunk = `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"a"}}]}` + "\n\n"
	for event, class := range map[string]outcome.Class{
		`{"object":"error","message":"CUDA error","type":"InternalServerError","param":null,"code":500}`: outcome.Failed,
		`{"object":"error","message":"slow down","type":"rate_limit_exceeded","code":429}`:               outcome.Throttled,
	} {
		r := New(llm.Route{Family: llm.OpenAI}, true, 200, http.Header{"Content-Type": {"text/event-stream"}})
		r.Feed([]byte(chunk + "data: " + event + "\n\ndata: [DONE]\n\n"))
		r.End()
		if p := r.Failed(); p == nil || p.Outcome.Class != class {
			t.Errorf("%s: %+v, want %v", event, p, class)
		}
	}
	r := New(llm.Route{Family: llm.OpenAI}, true, 200, http.Header{"Content-Type": {"text/event-stream"}})
	r.Feed([]byte(chunk + `data: {"object":"chat.completion.chunk","message":"x","code":"y","choices":[]}` + "\n\ndata: [DONE]\n\n"))
	r.End()
	if p := r.Failed(); p != nil {
		t.Errorf("%+v", p)
	}
}
