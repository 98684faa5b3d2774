package llmsim

import (
	"net/http"

	"github.com/seed1158cd35/weir/llm"
)

// A dialect is how one family writes.
type dialect interface {
	// authenticate finds the key, or says what is wrong with how it was sent.
	authenticate(c *call) *failure
	// parse reads the body into the call, or says what is wrong with it.
	parse(c *call) *failure
	// whole is an answer that is not streamed.
	whole(c *call) []byte
	// opening, piece and closing are the events of a stream; piece i is the i-th.
	opening(c *call) [][]byte
	piece(c *call, i int) []byte
	closing(c *call) [][]byte
	// broken is an error in the middle of a stream.
	broken(c *call, f *failure) []byte
	// spoilt is an event that cannot be read.
	spoilt(c *call) []byte
	// ping is what is sent while there is nothing to send; nil means nothing is.
	ping(c *call) []byte
	// refuse is an error in place of an answer. It may set fields of the header.
	refuse(c *call, f *failure, h http.Header) (status int, body []byte)
	// header is what goes with a good answer.
	header(c *call, h http.Header)
	// streams is the content type of streams.
	streams(c *call) string
}

// dialects by family.
var dialects = map[llm.Family]dialect{
	llm.OpenAI:    openAI{},
	llm.Responses: responses{},
	llm.Anthropic: anthropic{},
	llm.Gemini:    gemini{},
	llm.Converse:  converse{},
	llm.Invoke:    invoke{},
}

// event is a server-sent event; name may be "".
func event(name, data string) []byte {
	if name == "" {
		return []byte("data: " + data + "\n\n")
	}
	return []byte("event: " + name + "\ndata: " + data + "\n\n")
}
