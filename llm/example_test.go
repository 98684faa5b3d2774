package llm_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

func ExampleRecognize() {
	r, ok := llm.Recognize("POST", "/model/anthropic.claude-3-haiku%3A0/converse-stream", "")
	fmt.Println(ok, r.Family, r.Operation, r.Model, r.Stream)
	_, ok = llm.Recognize("GET", "/v1/models", "")
	fmt.Println(ok)
	// Output:
	// true bedrock-converse converse anthropic.claude-3-haiku:0 true
	// false
}

func ExampleDefault() {
	r, err := llm.Default(llm.OpenAI).Parse([]byte("not even JSON"))
	fmt.Println(r.Operation, r.Generates, err)
	// Output: other false <nil>
}

func ExampleRoute_Parse() {
	route, _ := llm.Recognize("POST", "/v1/chat/completions", "")
	r, _ := route.Parse([]byte(`{"model":"gpt-5","max_completion_tokens":100,"n":2,"messages":[{"role":"user","content":"Where is it?"}]}`))
	fmt.Println(r.Model, r.MaxOutput, r.Stream, r.Question())
	_, err := route.Parse([]byte(`{"model":["gpt-5"]}`))
	wrong, _ := errors.AsType[*llm.RequestError](err)
	fmt.Println(wrong.Field, wrong)
	// Output:
	// gpt-5 200 false Where is it?
	// model the body's model is not a string
}

func ExampleRequest_Prompt() {
	route, _ := llm.Recognize("POST", "/v1/messages", "")
	r, _ := route.Parse([]byte(`{"model":"claude","system":"Be kind.","messages":[{"role":"user","content":"Hello"}]}`))
	p := r.Prompt()
	fmt.Println(p.Messages, p.System, p.Text, p.Bytes())
	for part, text := range r.Texts() {
		fmt.Println(part == llm.InSystem, string(text))
	}
	// Output:
	// 1 8 5 13
	// true Be kind.
	// false Hello
}

func ExampleRequest_Key() {
	route, _ := llm.Recognize("POST", "/v1/messages", "")
	a, _ := route.Parse([]byte(`{"model":"claude","max_tokens":10,"stream":true}`))
	b, _ := route.Parse([]byte(`{ "max_tokens": 1e1, "model": "claude" }`))
	fmt.Println(a.Key() == b.Key())
	// Output: true
}

func ExampleRequest_For() {
	route, _ := llm.Recognize("POST", "/v1/chat/completions", "")
	r, _ := route.Parse([]byte(`{"model":"gpt-5", "messages":[]}`))
	path, _, body := r.For("gpt-5-mini")
	fmt.Println(path, string(body))
	// Output: /v1/chat/completions {"model":"gpt-5-mini", "messages":[]}
}

func ExampleRequest_AskUsage() {
	route, _ := llm.Recognize("POST", "/v1/chat/completions", "")
	r, _ := route.Parse([]byte(`{"model":"gpt-5","stream":true}`))
	fmt.Println(string(r.AskUsage()), r.AddedUsage)
	// Output: {"stream_options":{"include_usage":true},"model":"gpt-5","stream":true} true
}

func ExampleRequest_Answer() {
	route, _ := llm.Recognize("POST", "/v1/messages", "")
	r, _ := route.Parse([]byte(`{"model":"claude","max_tokens":10}`))
	h, body := r.Answer(llm.Answer{Text: "We are closed.", ID: "1", Meta: map[string]string{"tier": "static"}})
	fmt.Println(h.Get("Content-Type"))
	fmt.Println(string(body))
	// Output:
	// application/json
	// {"id":"msg_1","type":"message","role":"assistant","model":"claude","content":[{"type":"text","text":"We are closed."}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0},"metadata":{"tier":"static"}}
}

func ExampleRoute_Refuse() {
	kindOf := func(err error) llm.Kind { // maps the program's errors to kinds
		if errors.Is(err, context.DeadlineExceeded) {
			return llm.Timeout
		}
		return llm.Exhausted
	}
	w := httptest.NewRecorder()
	err := errors.New("the quota of the day is used up")
	llm.Default(llm.OpenAI).Refuse(w, llm.Failure{Kind: kindOf(err), Message: err.Error(), RetryAfter: 5 * time.Hour})
	fmt.Println(w.Code == http.StatusTooManyRequests, w.Header().Get("X-Should-Retry"))
	fmt.Print(w.Body)
	// Output:
	// true false
	// {"error":{"message":"the quota of the day is used up","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}
}
