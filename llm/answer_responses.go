package llm

func (s *said) response() object {
	return s.responseAs("completed", list{s.responseItem("completed", list{responsePart(s.text)})}, s.responseUsage())
}

// responseAs returns a response with the given status. It repeats the request fields that the API repeats, because
// clients' types require them.
func (s *said) responseAs(status string, output list, usage any) object {
	o := object{"id", s.named("resp_"), "object", "response", "created_at", s.created, "status", status, "background", false,
		"error", nil, "incomplete_details", nil}
	for _, e := range []struct {
		name string
		or   any
	}{
		{"instructions", nil}, {"max_output_tokens", nil}, {"max_tool_calls", nil}, {"previous_response_id", nil},
		{"parallel_tool_calls", true}, {"temperature", 1}, {"top_p", 1}, {"tool_choice", "auto"}, {"tools", list{}},
		{"reasoning", object{"effort", nil, "summary", nil}}, {"text", object{"format", object{"type", "text"}}}, {"truncation", "disabled"},
	} {
		o = append(o, e.name, s.echo(e.name, e.or))
	}
	o = append(o, "model", s.by, "output", output, "service_tier", "default", "store", false, "usage", usage, "user", s.echo("user", nil))
	if len(s.meta) == 0 {
		return append(o, "metadata", s.echo("metadata", object{}))
	}
	return s.with(o, "metadata")
}

func (s *said) responseItem(status string, content list) object {
	return object{"id", s.named("msg_"), "type", "message", "status", status, "role", "assistant", "content", content}
}

func responsePart(text string) object {
	return object{"type", "output_text", "text", text, "annotations", list{}, "logprobs", list{}}
}

func (s *said) responseUsage() object {
	return object{"input_tokens", s.usage.Input, "input_tokens_details", object{"cached_tokens", s.usage.CacheRead},
		"output_tokens", s.usage.Output, "output_tokens_details", object{"reasoning_tokens", 0}, "total_tokens", s.usage.Total()}
}

// responseEvents returns the events of a stream, numbered from 0.
func (s *said) responseEvents() (all []event) {
	add := func(kind string, rest ...any) {
		o := object{"type", kind, "sequence_number", len(all)}
		all = append(all, event{name: kind, data: append(o, rest...)})
	}
	at := object{"item_id", s.named("msg_"), "output_index", 0, "content_index", 0}
	part := func(rest ...any) object { return append(append(object{}, at...), rest...) }
	begun := s.responseAs("in_progress", list{}, nil)
	add("response.created", "response", begun)
	add("response.in_progress", "response", begun)
	add("response.output_item.added", "output_index", 0, "item", s.responseItem("in_progress", list{}))
	add("response.content_part.added", part("part", responsePart(""))...)
	for _, text := range s.pieces() {
		add("response.output_text.delta", part("delta", text, "logprobs", list{})...)
	}
	add("response.output_text.done", part("text", s.text, "logprobs", list{})...)
	add("response.content_part.done", part("part", responsePart(s.text))...)
	add("response.output_item.done", "output_index", 0, "item", s.responseItem("completed", list{responsePart(s.text)}))
	add("response.completed", "response", s.response())
	return all
}
