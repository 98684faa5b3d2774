package llm

import (
	"bytes"
	"encoding/base64"

	"github.com/seed1158cd35/weir/llm/frame"
)

const eventStream = "text/event-stream; charset=utf-8"

// openAIFrames writes events without names, followed by OpenAI's end marker.
func (r *Request) openAIFrames(events []event) (string, []byte) {
	var b []byte
	for _, e := range events {
		b = append(appendObject(append(b, "data: "...), e.data), "\n\n"...)
	}
	return eventStream, append(b, "data: [DONE]\n\n"...)
}

func (r *Request) namedFrames(events []event) (string, []byte) {
	var b []byte
	for _, e := range events {
		b = appendNamed(b, e)
	}
	return eventStream, b
}

func appendNamed(b []byte, e event) []byte {
	b = append(append(append(b, "event: "...), e.name...), "\ndata: "...)
	return append(appendObject(b, e.data), "\n\n"...)
}

// geminiFrames writes server-sent events, or the elements of one JSON array.
func (r *Request) geminiFrames(events []event) (string, []byte) {
	if !r.array {
		var b []byte
		for _, e := range events {
			b = append(appendObject(append(b, "data: "...), e.data), "\r\n\r\n"...)
		}
		return "text/event-stream", b
	}
	b := []byte{'['}
	for i, e := range events {
		if i > 0 {
			b = append(b, ",\r\n"...)
		}
		b = appendObject(b, e.data)
	}
	return "application/json; charset=UTF-8", append(b, ']')
}

const awsStream = "application/vnd.amazon.eventstream"

func (r *Request) converseFrames(events []event) (string, []byte) {
	var b bytes.Buffer
	for _, e := range events {
		_ = frame.WriteEvent(&b, e.name, appendObject(nil, e.data)) // a bytes.Buffer returns no errors
	}
	return awsStream, b.Bytes()
}

// chunkFrames writes the vendor's events, each base64-encoded in a chunk event.
func (r *Request) chunkFrames(events []event) (string, []byte) {
	var b bytes.Buffer
	for _, e := range events {
		inner := base64.StdEncoding.EncodeToString(appendObject(nil, e.data))
		_ = frame.WriteEvent(&b, "chunk", appendObject(nil, object{"bytes", inner}))
	}
	return awsStream, b.Bytes()
}
