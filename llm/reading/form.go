package reading

import (
	"mime"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
)

type form uint8

const (
	blind    form = iota // unreadable
	text1                // one JSON text
	events               // server-sent events
	messages             // an AWS event stream
	array                // a JSON array that arrives element by element
)

func (f form) splitter() frame.Splitter {
	switch f {
	case events:
		return &frame.SSE{}
	case messages:
		return &frame.Messages{}
	case array:
		return &frame.Array{}
	}
	return nil
}

func formOf(route llm.Route, stream bool, h http.Header) form {
	if c := h.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return blind
	}
	stream = stream || route.Stream
	media, _, _ := mime.ParseMediaType(h.Get("Content-Type"))
	switch {
	case media == "text/event-stream":
		return events
	case media == "application/vnd.amazon.eventstream":
		return messages
	case media == "application/json" || strings.HasSuffix(media, "+json"):
		if stream && route.Family == llm.Gemini {
			return array
		}
		return text1
	case media == "" || media == "text/plain": // some servers send no specific type
		return expected(route.Family, stream)
	}
	return blind
}

// expected returns the form of an answer without a specific Content-Type.
func expected(f llm.Family, stream bool) form {
	switch {
	case !stream:
		return text1
	case f == llm.Converse || f == llm.Invoke:
		return messages
	}
	return events
}
