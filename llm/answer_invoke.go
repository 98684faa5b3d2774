package llm

import (
	"net/http"
	"strconv"
	"strings"
)

// counts sets the headers in which InvokeModel reports usage for every model.
func (s *said) counts(h http.Header) {
	h.Set("X-Amzn-Bedrock-Input-Token-Count", strconv.FormatInt(s.usage.fresh(), 10))
	h.Set("X-Amzn-Bedrock-Output-Token-Count", strconv.FormatInt(s.usage.Output, 10))
	h.Set("X-Amzn-Bedrock-Invocation-Latency", "0")
}

// vendors lists the model vendors whose formats are implemented.
var vendors = []struct {
	model, has string // part of the model's name; a member of the request body
	voice      voice
}{
	{"anthropic.", "anthropic_version", invoked((*said).message, (*said).messageEvents)},
	{"amazon.nova", "schemaVersion", invoked((*said).nova, (*said).novaEvents)},
	{"amazon.nova", "inferenceConfig", invoked((*said).nova, (*said).novaEvents)},
	{"amazon.titan", "inputText", invoked((*said).titan, (*said).titanEvents)},
	{"meta.", "max_gen_len", invoked((*said).llama, (*said).llamaEvents)},
	{"cohere.", "message", invoked((*said).cohere, (*said).cohereEvents)},
}

func invoked(whole func(*said) object, events func(*said) []event) voice {
	return voice{whole: whole, events: func(s *said) []event { return s.measured(events(s)) }, frame: (*Request).chunkFrames}
}

// measured adds the invocation metrics that Bedrock adds to the last event of every model.
func (s *said) measured(all []event) []event {
	last := &all[len(all)-1]
	last.data = append(last.data, "amazon-bedrock-invocationMetrics", object{"inputTokenCount", s.usage.fresh(),
		"outputTokenCount", s.usage.Output, "invocationLatency", 0, "firstByteLatency", 0})
	return all
}

// vendor returns the voice for a Bedrock model's vendor. It checks the body's members before the model's name, because
// the name may be an inference profile's. Most other vendors, including Mistral, AI21, DeepSeek, Qwen and OpenAI, use
// OpenAI's messages. A model that takes a prompt instead gets Mistral's outputs together with choices.
func (r *Request) vendor() voice {
	for _, v := range vendors {
		if len(r.doc.nodes) > 0 && r.doc.member(0, v.has) != 0 {
			return v.voice
		}
	}
	for _, v := range vendors {
		if strings.Contains(r.Model, v.model) {
			return v.voice
		}
	}
	if len(r.doc.nodes) > 0 && r.doc.member(0, "messages") == 0 {
		return invoked((*said).outputs, (*said).outputEvents)
	}
	return invoked((*said).chat, (*said).chatChunks)
}

func (s *said) nova() object {
	message := object{"content", list{object{"text", s.text}}, "role", "assistant"}
	return object{"output", object{"message", message}, "stopReason", "end_turn", "usage", s.novaUsage()}
}

func (s *said) novaUsage() object {
	return object{"inputTokens", s.usage.fresh(), "outputTokens", s.usage.Output, "totalTokens", s.usage.Total(),
		"cacheReadInputTokenCount", s.usage.CacheRead, "cacheWriteInputTokenCount", s.usage.CacheWrite}
}

func (s *said) novaEvents() []event {
	all := []event{{data: object{"messageStart", object{"role", "assistant"}}}}
	for _, text := range s.pieces() {
		all = append(all, event{data: object{"contentBlockDelta", object{"delta", object{"text", text}, "contentBlockIndex", 0}}})
	}
	return append(all,
		event{data: object{"contentBlockStop", object{"contentBlockIndex", 0}}},
		event{data: object{"messageStop", object{"stopReason", "end_turn"}}},
		event{data: object{"metadata", object{"usage", s.novaUsage(), "metrics", object{}, "trace", object{}}}})
}

func (s *said) titan() object {
	result := object{"tokenCount", s.usage.Output, "outputText", s.text, "completionReason", "FINISH"}
	return object{"inputTextTokenCount", s.usage.Input, "results", list{result}}
}

func (s *said) titanEvents() []event {
	return s.each(func(text string, last bool) object {
		o := object{"outputText", text, "index", 0}
		if !last {
			return append(o, "totalOutputTextTokenCount", nil, "completionReason", nil, "inputTextTokenCount", nil)
		}
		return append(o, "totalOutputTextTokenCount", s.usage.Output, "completionReason", "FINISH", "inputTextTokenCount", s.usage.Input)
	})
}

// each returns one event for each piece of the text, and at least one event.
func (s *said) each(of func(text string, last bool) object) (all []event) {
	texts := s.pieces()
	if len(texts) == 0 {
		texts = []string{""}
	}
	for i, text := range texts {
		all = append(all, event{data: of(text, i == len(texts)-1)})
	}
	return all
}

func (s *said) llama() object { return s.generation(s.text, true) }

func (s *said) generation(text string, last bool) object {
	if !last {
		return object{"generation", text, "prompt_token_count", nil, "generation_token_count", 0, "stop_reason", nil}
	}
	return object{"generation", text, "prompt_token_count", s.usage.Input, "generation_token_count", s.usage.Output, "stop_reason", "stop"}
}

func (s *said) llamaEvents() []event { return s.each(s.generation) }

func (s *said) cohere() object {
	return object{"response_id", s.id, "text", s.text, "generation_id", s.id, "chat_history", list{}, "finish_reason", "COMPLETE",
		"generations", list{object{"id", s.id, "text", s.text, "finish_reason", "COMPLETE"}}}
}

func (s *said) cohereEvents() []event {
	all := s.each(func(text string, _ bool) object {
		return object{"is_finished", false, "event_type", "text-generation", "text", text}
	})
	return append(all, event{data: object{"is_finished", true, "event_type", "stream-end", "finish_reason", "COMPLETE", "response", s.cohere()}})
}

func (s *said) outputs() object { return s.output(s.text, true) }

func (s *said) output(text string, last bool) object {
	var stop any
	if last {
		stop = "stop"
	}
	return object{"outputs", list{object{"text", text, "stop_reason", stop}}, "choices", list{object{"text", text, "index", 0, "stop_reason", stop}}}
}

func (s *said) outputEvents() []event { return s.each(s.output) }
