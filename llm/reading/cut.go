package reading

import (
	"bytes"
	"encoding/json"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

// Cut is what tells the caller that a stream ends before its time, as the family
// reports errors inside of a stream; code is a short word such as "upstream_cut".
// It goes behind what Feed has returned, in place of Tail; the connection is to be
// closed after it. It is empty where the form has no room for an error: in a text
// that is not streamed, or in the middle of a message that is being passed on.
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
		// Without the inner error the SDKs hand the event on like any other (openai 7.55 for
		// JavaScript), and the cut would pass for the end.
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

// cutMessage is an exception that a caller may take for a passing fault.
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
	b, _ := json.Marshal(v) // maps of strings and numbers: it cannot fail
	return b
}
