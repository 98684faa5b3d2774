package llm

func (s *said) message() object {
	return s.messageAs(list{object{"type", "text", "text", s.text}}, "end_turn", s.usage.Output)
}

func (s *said) messageAs(content list, stop any, output int64) object {
	o := object{"id", s.named("msg_"), "type", "message", "role", "assistant", "model", s.by, "content", content,
		"stop_reason", stop, "stop_sequence", nil, "usage", s.messageUsage(output)}
	return s.with(o, "metadata")
}

func (s *said) messageUsage(output int64) object {
	return object{"input_tokens", s.usage.fresh(), "cache_creation_input_tokens", s.usage.CacheWrite,
		"cache_read_input_tokens", s.usage.CacheRead, "output_tokens", output}
}

func (s *said) messageEvents() (all []event) {
	add := func(kind string, rest ...any) {
		all = append(all, event{name: kind, data: append(object{"type", kind}, rest...)})
	}
	add("message_start", "message", s.messageAs(list{}, nil, 0))
	add("content_block_start", "index", 0, "content_block", object{"type", "text", "text", ""})
	for _, text := range s.pieces() {
		add("content_block_delta", "index", 0, "delta", object{"type", "text_delta", "text", text})
	}
	add("content_block_stop", "index", 0)
	add("message_delta", "delta", object{"stop_reason", "end_turn", "stop_sequence", nil}, "usage", s.messageUsage(s.usage.Output))
	add("message_stop")
	return all
}
