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

// What was written to a cache for an hour has a price of its own, however the family reports it.
func TestCacheWriteForAnHour(t *testing.T) {
	for _, c := range []struct {
		family llm.Family
		body   string
		want   int64
	}{
		{llm.Anthropic, `{"type":"message","usage":{"cache_creation_input_tokens":300,"cache_creation":{"ephemeral_5m_input_tokens":100,"ephemeral_1h_input_tokens":200}}}`, 200},
		{llm.Converse, `{"usage":{"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"1h","inputTokens":200},{"ttl":"5m","inputTokens":100}]}}`, 200},
		{llm.Converse, `{"usage":{"cacheDetails":[{"inputTokens":100,"ttl":"5m"},{"inputTokens":200,"ttl":"1h"}],"cacheWriteInputTokens":300}}`, 200},
		{llm.Converse, `{"usage":{"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"5m","inputTokens":300}]}}`, 0},
		{llm.Converse, `{"usage":{"cacheWriteInputTokens":300,"cacheDetails":[{"ttl":"1h"},{"inputTokens":300},{}]}}`, 0},
		{llm.Invoke, `{"usage":{"cacheWriteInputTokenCount":300,"cacheDetails":[{"ttl":"1h","inputTokens":200}]}}`, 200},
	} {
		r := reading.New(llm.Default(c.family), false, 200, http.Header{"Content-Type": {"application/json"}})
		r.Feed([]byte(c.body))
		r.End()
		if got := r.Usage(); got.WriteHour != c.want || got.CacheWrite != 300 {
			t.Errorf("%v, %s: %+v, want %d of 300 for an hour", c.family, c.body, got, c.want)
		}
	}
}

// A model that stops because of an error has failed, whatever its status says.
func TestFinishReasonErrorIsAFault(t *testing.T) {
	for reason, want := range map[string]bool{"error": true, "ERROR": true, "stop": false, "length": false} {
		r := reading.New(llm.Default(llm.OpenAI), true, 200, http.Header{"Content-Type": {"text/event-stream"}})
		r.Feed([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"" + reason + "\"}]}\n\ndata: [DONE]\n\n"))
		r.End()
		if got := r.Failed() != nil; got != want {
			t.Errorf("%s: failed: %v, want %v", reason, got, want)
		}
	}
}
