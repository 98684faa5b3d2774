package reading_test

import (
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/reading"
)

// The usage has the service tier that served the call, from the last event of the answer, and not the requested tier.
func TestTierThatServedTheCall(t *testing.T) {
	const (
		events = "text/event-stream"
		object = "application/json"
	)
	for _, c := range []struct {
		name   string
		family llm.Family
		stream bool
		header http.Header
		body   string
		want   string
	}{
		{"chat", llm.OpenAI, false, nil, `{"service_tier":"flex","choices":[]}`, "flex"},
		{"chat without one", llm.OpenAI, false, nil, `{"service_tier":null,"choices":[]}`, ""},
		{"chat stream", llm.OpenAI, true, nil, "data: {\"service_tier\":\"auto\",\"choices\":[]}\n\ndata: {\"service_tier\":\"priority\",\"choices\":[]}\n\ndata: {\"choices\":[]}\n\n", "priority"},
		{"chat stream that ends in auto", llm.OpenAI, true, nil, "data: {\"service_tier\":\"flex\",\"choices\":[]}\n\ndata: {\"service_tier\":\"auto\",\"choices\":[]}\n\n", "flex"},
		{"Responses stream", llm.Responses, true, nil, "data: {\"type\":\"response.created\",\"response\":{\"service_tier\":\"auto\"}}\n\ndata: {\"type\":\"response.completed\",\"response\":{\"service_tier\":\"default\"}}\n\n", "default"},
		{"Messages stream", llm.Anthropic, true, nil, "data: {\"type\":\"message_start\",\"message\":{\"usage\":{\"service_tier\":\"priority\",\"inference_geo\":\"us\"}}}\n\ndata: {\"type\":\"message_delta\",\"usage\":{\"output_tokens\":3}}\n\n", "priority+us"},
		{"Messages, fast, elsewhere", llm.Anthropic, false, nil, `{"type":"message","usage":{"speed":"fast","inference_geo":"global"}}`, "fast"},
		{"Gemini header", llm.Gemini, false, http.Header{"X-Gemini-Service-Tier": {"Flex"}}, `{"candidates":[]}`, "flex"},
		{"Vertex", llm.Gemini, false, nil, `{"usageMetadata":{"trafficType":"ON_DEMAND_PRIORITY"}}`, "on_demand_priority"},
		{"Converse", llm.Converse, false, nil, `{"serviceTier":{"type":"flex"}}`, "flex"},
		{"Invoke header", llm.Invoke, false, http.Header{"X-Amzn-Bedrock-Service-Tier": {"priority"}}, `{}`, "priority"},
		{"a tier that is an object", llm.OpenAI, false, nil, `{"service_tier":{"a":"flex"},"choices":[]}`, ""},
	} {
		h := c.header
		if h == nil {
			h = http.Header{}
		}
		h.Set("Content-Type", object)
		if c.stream {
			h.Set("Content-Type", events)
		}
		r := reading.New(llm.Default(c.family), c.stream, 200, h)
		r.Feed([]byte(c.body))
		r.End()
		if got := r.Usage().Tier; got != c.want {
			t.Errorf("%s: the tier is %q, want %q", c.name, got, c.want)
		}
	}
}
