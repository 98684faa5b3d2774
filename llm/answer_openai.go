package llm

// chat returns a chat completion with the fields of OpenAI's API reference (November 2026). Clients read
// choices[].message and usage.
func (s *said) chat() object {
	choices := list{}
	for i := range s.choices() {
		choices = append(choices, object{"index", i, "message", object{"role", "assistant", "content", s.text, "refusal", nil, "annotations", list{}},
			"logprobs", nil, "finish_reason", "stop"})
	}
	return s.with(object{"id", s.named("chatcmpl-"), "object", "chat.completion", "created", s.created, "model", s.by,
		"choices", choices, "usage", s.chatUsage()}, "metadata")
}

func (s *said) chatUsage() object {
	return object{"prompt_tokens", s.usage.Input, "completion_tokens", s.usage.Output, "total_tokens", s.usage.Total(),
		"prompt_tokens_details", object{"cached_tokens", s.usage.CacheRead, "audio_tokens", 0},
		"completion_tokens_details", object{"reasoning_tokens", 0, "audio_tokens", 0, "accepted_prediction_tokens", 0, "rejected_prediction_tokens", 0}}
}

func (s *said) chatChunks() (all []event) {
	chunk := func(i int, delta object, finish any) event {
		return s.chunk("chatcmpl-", "chat.completion.chunk", list{object{"index", i, "delta", delta, "logprobs", nil, "finish_reason", finish}})
	}
	for i := range s.choices() {
		first := chunk(i, object{"role", "assistant", "content", "", "refusal", nil}, nil)
		if i == 0 {
			first.data = s.with(first.data, "metadata")
		}
		all = append(all, first)
		for _, text := range s.pieces() {
			all = append(all, chunk(i, object{"content", text}, nil))
		}
		all = append(all, chunk(i, object{}, "stop"))
	}
	return s.usageChunk(all, "chatcmpl-", "chat.completion.chunk")
}

func (s *said) chunk(prefix, kind string, choices list) event {
	o := object{"id", s.named(prefix), "object", kind, "created", s.created, "model", s.by, "choices", choices}
	if s.ReportsUsage && s.Family == OpenAI && len(choices) > 0 {
		o = append(o, "usage", nil)
	}
	return event{data: o}
}

// usageChunk appends the final chunk, which has usage and no choices, if the request asked for it.
func (s *said) usageChunk(all []event, prefix, kind string) []event {
	if !s.ReportsUsage || s.Family != OpenAI {
		return all
	}
	last := s.chunk(prefix, kind, list{})
	last.data = append(last.data, "usage", s.chatUsage())
	return append(all, last)
}

// completion returns a legacy completion, which continues a text.
func (s *said) completion() object {
	choices := list{}
	for i := range s.choices() {
		choices = append(choices, completionChoice(i, s.text, "stop"))
	}
	return object{"id", s.named("cmpl-"), "object", "text_completion", "created", s.created, "model", s.by, "choices", choices, "usage", s.chatUsage()}
}

func completionChoice(i int, text string, finish any) object {
	return object{"text", text, "index", i, "logprobs", nil, "finish_reason", finish}
}

func (s *said) completionChunks() (all []event) {
	for i := range s.choices() {
		for _, text := range s.pieces() {
			all = append(all, s.chunk("cmpl-", "text_completion", list{completionChoice(i, text, nil)}))
		}
		all = append(all, s.chunk("cmpl-", "text_completion", list{completionChoice(i, "", "stop")}))
	}
	return s.usageChunk(all, "cmpl-", "text_completion")
}
