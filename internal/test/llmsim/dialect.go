package llmsim

import (
	"net/http"

	"github.com/seed1158cd35/weir/llm"
)

// A dialect implements the format of one family.
type dialect interface {
	// authenticate finds the key, or returns an error in its form.
	authenticate(c *call) *failure
	// parse parses the body, or returns an error in it.
	parse(c *call) *failure
	// whole returns a response that is not streamed.
	whole(c *call) []byte
	// opening, piece and closing return the events of a stream. piece i is the i-th.
	opening(c *call) [][]byte
	piece(c *call, i int) []byte
	closing(c *call) [][]byte
	// broken returns an error event in the middle of a stream.
	broken(c *call, f *failure) []byte
	// spoilt returns an invalid event.
	spoilt(c *call) []byte
	// ping returns the event for idle times, or nil.
	ping(c *call) []byte
	// refuse returns an error response. It may set headers.
	refuse(c *call, f *failure, h http.Header) (status int, body []byte)
	// header sets the headers of a successful response.
	header(c *call, h http.Header)
	// streams returns the content type of streams.
	streams(c *call) string
}

// dialects are the dialects by family.
var dialects = map[llm.Family]dialect{
	llm.OpenAI:    openAI{},
	llm.Responses: responses{},
	llm.Anthropic: anthropic{},
	llm.Gemini:    gemini{},
	llm.Converse:  converse{},
	llm.Invoke:    invoke{},
}

// event returns a server-sent event. name may be "".
func event(name, data string) []byte {
	if name == "" {
		return []byte("data: " + data + "\n\n")
	}
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}
