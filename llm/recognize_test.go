package llm

import (
	"net/http"
	"testing"
)

func TestRecognize(t *testing.T) {
	for _, c := range []struct {
		path, query string
		want        Route
	}{
		{"/v1/chat/completions", "", Route{Family: OpenAI, Operation: "chat", Generates: true}},
		{"/chat/completions", "", Route{Family: OpenAI, Operation: "chat", Generates: true}},
		{"/v1beta/openai/chat/completions", "", Route{Family: OpenAI, Operation: "chat", Generates: true}},
		{"/v1/projects/p/locations/l/endpoints/openapi/chat/completions", "", Route{Family: OpenAI, Operation: "chat", Generates: true}},
		{"/openai/deployments/my%20gpt/chat/completions", "api-version=2024-10-21", Route{Family: OpenAI, Operation: "chat", Model: "my gpt", Generates: true}},
		{"/openai/deployments/ada/embeddings", "", Route{Family: OpenAI, Operation: "embeddings", Model: "ada"}},
		{"/v1/completions", "", Route{Family: OpenAI, Operation: "completions", Generates: true}},
		{"/v1/embeddings", "", Route{Family: OpenAI, Operation: "embeddings"}},
		{"/v1/responses", "", Route{Family: Responses, Operation: "responses", Generates: true}},
		{"/v1/responses/input_tokens", "", Route{Family: Responses, Operation: "count_tokens"}},
		{"/v1/messages", "beta=true", Route{Family: Anthropic, Operation: "messages", Generates: true}},
		{"/anthropic/v1/messages", "", Route{Family: Anthropic, Operation: "messages", Generates: true}},
		{"/v1/messages/count_tokens", "", Route{Family: Anthropic, Operation: "count_tokens"}},
		{"/v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20250101:streamRawPredict", "", Route{Family: Anthropic, Operation: "messages", Model: "claude-x@20250101", Generates: true}},
		{"/v1beta/models/gemini-x:generateContent", "", Route{Family: Gemini, Operation: "generate", Model: "gemini-x", Generates: true}},
		{"/v1beta/models/gemini-x%3AgenerateContent", "", Route{Family: Gemini, Operation: "generate", Model: "gemini-x", Generates: true}},
		{"/v1beta/tunedModels/mine:generateContent", "", Route{Family: Gemini, Operation: "generate", Model: "mine", Generates: true}},
		{"/v1beta/models/gemini-x:streamGenerateContent", "key=k&alt=sse", Route{Family: Gemini, Operation: "generate", Model: "gemini-x", Stream: true, Generates: true}},
		{"/v1beta/models/gemini-x:streamGenerateContent", "key=k", Route{Family: Gemini, Operation: "generate", Model: "gemini-x", Stream: true, Generates: true, array: true}},
		{"/v1beta/models/e:embedContent", "", Route{Family: Gemini, Operation: "embeddings", Model: "e"}},
		{"/v1beta/models/e:batchEmbedContents", "", Route{Family: Gemini, Operation: "embeddings", Model: "e"}},
		{"/v1beta/models/gemini-x:countTokens", "", Route{Family: Gemini, Operation: "count_tokens", Model: "gemini-x"}},
		{"/v1/projects/p/locations/l/publishers/google/models/gemini-x:generateContent", "", Route{Family: Gemini, Operation: "generate", Model: "gemini-x", Generates: true}},
		{"/model/anthropic.claude-v1%3A0/converse", "", Route{Family: Converse, Operation: "converse", Model: "anthropic.claude-v1:0", Generates: true}},
		{"/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream", "", Route{Family: Converse, Operation: "converse", Model: "arn:aws:bedrock:us-east-1:1:inference-profile/us.x", Stream: true, Generates: true}},
		{"/model/amazon.nova-lite-v1:0/invoke", "", Route{Family: Invoke, Operation: "invoke", Model: "amazon.nova-lite-v1:0", Generates: true}},
		{"/model/amazon.titan-embed-text-v2%3A0/invoke", "", Route{Family: Invoke, Operation: "invoke", Model: "amazon.titan-embed-text-v2:0"}},
		{"/model/meta.llama/invoke-with-response-stream", "", Route{Family: Invoke, Operation: "invoke", Model: "meta.llama", Stream: true, Generates: true}},
		{"/model/meta.llama/count-tokens", "", Route{Family: Converse, Operation: "count_tokens", Model: "meta.llama"}},
	} {
		got, ok := Recognize(http.MethodPost, c.path, c.query)
		c.want.path, c.want.query, c.want.from, c.want.to = c.path, c.query, got.from, got.to
		if !ok || got != c.want {
			t.Errorf("%s?%s:\n got %+v %v\nwant %+v", c.path, c.query, got, ok, c.want)
		}
		if _, ok := Recognize(http.MethodGet, c.path, c.query); ok {
			t.Errorf("GET %s is recognised", c.path)
		}
	}
}

func TestWhatIsNoCallIsNotRecognised(t *testing.T) {
	for _, path := range []string{
		"", "/", "/v1/models", "/v1/files", "/v1/batches", "/v1/messages/batches", "/v1/threads/t/messages", "/v1/chat/completions/id",
		"/v1/responses/resp_1/cancel", "/v1beta/models", "/v1beta/models/:generateContent", "/v1beta/models/m:other", "/v1beta/files/m:generateContent",
		"/v1/publishers/mistralai/models/m:rawPredict", "/model/m/other", "/model//converse", "/model/converse", "/model/%zz/converse", "/v1beta/models/%zz:generateContent",
		"generateContent:", ":generateContent", "/foundation-models",
	} {
		if r, ok := Recognize(http.MethodPost, path, ""); ok {
			t.Errorf("%q is recognised as %+v", path, r)
		}
	}
}

func TestDefaultTakesAnyBody(t *testing.T) {
	for _, body := range []string{"", "--boundary\r\n", "\xff", "[1]", `{"model":"m"}`, `{"model":5}`} {
		r, err := Default(OpenAI).Parse([]byte(body))
		if err != nil {
			t.Errorf("%q: %v", body, err)
			continue
		}
		if want := map[bool]string{true: "m"}[body == `{"model":"m"}`]; r.Model != want {
			t.Errorf("%q: model %q, want %q", body, r.Model, want)
		}
		if h, b := r.Answer(Answer{Text: "x"}); h != nil || b != nil {
			t.Errorf("%q has an answer", body)
		}
		_, _, _, _ = r.Key(), r.Prompt(), r.Question(), r.AskUsage()
	}
}
