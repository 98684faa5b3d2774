package llm

func (s *said) converse() object {
	message := object{"role", "assistant", "content", list{object{"text", s.text}}}
	return s.with(object{"output", object{"message", message}, "stopReason", "end_turn", "usage", s.converseUsage(),
		"metrics", object{"latencyMs", 0}}, "additionalModelResponseFields")
}

func (s *said) converseUsage() object {
	return object{"inputTokens", s.usage.fresh(), "outputTokens", s.usage.Output, "totalTokens", s.usage.Total(),
		"cacheReadInputTokens", s.usage.CacheRead, "cacheWriteInputTokens", s.usage.CacheWrite}
}

// converseEvents returns no contentBlockStart, because Bedrock sends that event only for tools.
func (s *said) converseEvents() []event {
	all := []event{{name: "messageStart", data: object{"role", "assistant"}}}
	for _, text := range s.pieces() {
		all = append(all, event{name: "contentBlockDelta", data: object{"contentBlockIndex", 0, "delta", object{"text", text}}})
	}
	return append(all,
		event{name: "contentBlockStop", data: object{"contentBlockIndex", 0}},
		event{name: "messageStop", data: s.with(object{"stopReason", "end_turn"}, "additionalModelResponseFields")},
		event{name: "metadata", data: object{"usage", s.converseUsage(), "metrics", object{"latencyMs", 0}}})
}
