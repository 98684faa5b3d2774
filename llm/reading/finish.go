package reading

import "bytes"

// finished records why the model stopped. Some servers send the field in every event, empty until the last one.
func (r *Reader) finished(f field, raw []byte) {
	if len(raw) == 0 {
		return
	}
	r.stopped = true
	r.finish = append(r.finish[:0], clip(raw, maxWord)...)
	if f == finish && bytes.EqualFold(raw, []byte("error")) { // Mistral, Cohere, OpenRouter
		r.fault.any = true
	}
	if f != finish || !wellFinished(raw) {
		r.cutShort = true
	}
}

// wellFinished reports whether the reason means a complete answer. An unknown reason does not, so that no incomplete
// answer is cached.
func wellFinished(reason []byte) bool {
	switch string(bytes.ToLower(clip(reason, maxWord))) {
	case "stop", "tool_calls", "function_call", // OpenAI, Gemini
		"end_turn", "stop_sequence", "tool_use", // Anthropic, Bedrock
		"finish", "complete", "endoftext", "eos", "eos_token", "completed": // other Bedrock models, other servers
		return true
	}
	return false
}

// ended records the status of a Response.
func (r *Reader) ended(status string) {
	r.pending = r.cut == nil && (status == "queued" || status == "in_progress")
	switch status {
	case "completed":
		r.finish = append(r.finish[:0], status...)
	case "incomplete":
		r.cutShort = true
		if len(r.finish) == 0 {
			r.finish = append(r.finish, status...)
		}
	case "failed":
		r.fault.any = true
	case "cancelled":
		r.cutShort = true
		r.finish = append(r.finish[:0], status...)
	}
}
