package reading

import "bytes"

// finished takes in why the model stopped. Some servers say it in every event, as an
// empty string until it is so.
func (r *Reader) finished(f field, raw []byte) {
	if len(raw) == 0 {
		return
	}
	r.stopped = true
	r.finish = append(r.finish[:0], clip(raw, maxWord)...)
	if f != finish || !wellFinished(raw) {
		r.cutShort = true
	}
}

// wellFinished knows the reasons of answers that are all there. A word that is not
// known is none, so that nothing is kept by mistake.
func wellFinished(reason []byte) bool {
	switch string(bytes.ToLower(clip(reason, maxWord))) {
	case "stop", "tool_calls", "function_call", // OpenAI, Gemini
		"end_turn", "stop_sequence", "tool_use", // Anthropic, Bedrock
		"finish", "complete", "endoftext", "eos", "eos_token", "completed": // models of Bedrock, other servers
		return true
	}
	return false
}

// ended takes in how a Response stands.
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
