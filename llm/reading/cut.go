package reading

import (
	"bytes"
	"encoding/json"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

// Cut returns the bytes that tell the caller that a stream ends early, in the family's format for errors in a stream.
// code is a short word such as "upstream_cut". The bytes follow those returned by Feed and replace Tail. The caller must
// close the connection after them. Cut returns nothing if the format does not allow an error: without streaming, or
// inside a message that is being passed on.
func (r *Reader) Cut(code, message string) []byte {
	switch r.form {
	case events:
		return r.cutEvent(code, message)
	case array:
		return r.cutArray(message)
	case messages:
		return r.cutMessage(message)
	}
	return nil
}

func (r *Reader) cutEvent(code, message string) []byte {
	name, data := "", any(nil)
	fault := map[string]any{"message": message, "type": "server_error", "param": nil, "code": code}
	switch r.family {
	case llm.Anthropic:
		name, data = "error", map[string]any{"type": "error", "error": map[string]any{"type": "api_error", "message": message}}
	case llm.Responses:
		// Without the inner error, the SDKs treat the event like any other (openai 7.55 for JavaScript), and the early
		// end would look like a normal one.
		name, data = "error", map[string]any{"type": "error", "code": code, "message": message, "param": nil, "sequence_number": r.sequence, "error": fault}
	case llm.Gemini:
		data = googleError(message)
	default:
		data = map[string]any{"error": fault}
	}
	var b []byte
	if r.big.open {
		b = append(b, "\n\n"...)
	}
	return frame.AppendEvent(b, name, encode(data))
}

func (r *Reader) cutArray(message string) []byte {
	if r.big.open {
		return nil
	}
	before := "["
	if r.elements > 0 {
		before = ",\n"
	}
	return append(append([]byte(before), encode(googleError(message))...), "\n]"...)
}

// cutMessage returns an exception that callers treat as temporary.
func (r *Reader) cutMessage(message string) []byte {
	var b bytes.Buffer
	if r.big.open || frame.WriteException(&b, "modelStreamErrorException", encode(map[string]any{"message": message})) != nil {
		return nil
	}
	return b.Bytes()
}

func googleError(message string) any {
	return map[string]any{"error": map[string]any{"code": 503, "message": message, "status": "UNAVAILABLE"}}
}

func encode(v any) []byte {
	b, _ := json.Marshal(v) // maps of strings and numbers never fail
	return b
}
