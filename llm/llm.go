// Package llm is what the APIs of language models speak: how a request says which
// model is to do what, what it will cost, what an answer has used, how errors look,
// and how an answer is written that no model has given.
package llm

import (
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// A Family is a wire format. Requests of one family can be answered by any model of
// it, whatever provider or region it runs at.
type Family string

const (
	OpenAI    Family = "openai"           // chat completions, and what all compatible servers speak
	Responses Family = "openai-responses" // the newer one of OpenAI
	Anthropic Family = "anthropic"        // messages
	Gemini    Family = "gemini"           // generateContent, of the Gemini API and of Vertex
	Converse  Family = "bedrock-converse" // of Bedrock, the same for all of its models
	Invoke    Family = "bedrock-invoke"   // of Bedrock, in the model's own words
)

// A Route is what the path of a request says.
type Route struct {
	Family    Family
	Operation string // "chat", "responses", "embeddings", "messages", "count_tokens", "generate", "converse", "invoke", "other"
	Model     string // if the path names it, as those of Gemini and Bedrock do
	Stream    bool   // the path asks for a stream; in the other families the body says so
	Generates bool   // a model writes an answer: another one can, too, or a text that is there already

	path, query string // as they came, raw
	from, to    int    // where path names the model, if it does
	above       bool   // what path is behind names the model
	array       bool   // a stream of Gemini that is one JSON array, in place of events
}

// Usage is what an answer says that the call has used, in tokens.
type Usage struct {
	Input      int64 // all that was read, cached or not
	Output     int64 // all that was written, thoughts included
	CacheRead  int64 // of Input: read from the provider's cache
	CacheWrite int64 // of Input: written to it
	WriteHour  int64 // of CacheWrite: for an hour, and not for minutes
	Said       bool  // the answer did say

	// Tier is the service tier that the answer reports, in the provider's words; several are joined by "+". It is empty if the
	// answer reports none.
	Tier string
}

// Total is everything that limits of tokens count.
func (u Usage) Total() int64 { return u.Input + u.Output }

// An Answer is what was said, apart from how it is written.
type Answer struct {
	Text  string
	Model string // whom it is ascribed to
	ID    string // "" means that one is made
	Usage Usage
	Meta  map[string]string // goes where the family has room for it: see Request.Answer

	Created time.Time // when it was given; zero means now
}

// A Failure is an error of weir's own, to be written as the family writes them.
type Failure struct {
	Status  int // of HTTP
	Kind    Kind
	Message string
	Final   bool // the client should not try again

	RetryAfter time.Duration // when to come back, for families that say so in the body; 0 if that is not known
	ID         string        // of the request, for families that say it in an error; may be ""
}

// FailureOf is an error of weir's own, for the request of that id.
func FailureOf(f *refuse.Facts, id string) Failure {
	return Failure{Status: f.Status, Kind: f.Kind(), Message: f.Message, Final: f.Final, RetryAfter: f.Wait, ID: id}
}

// A Kind says what is wrong, apart from how a family calls it: for programs that have errors of
// their own to write with Route.Refuse.
type Kind = refuse.Kind

const (
	Invalid     = refuse.Invalid     // the request
	Stranger    = refuse.Stranger    // nobody knows who calls
	TooLarge    = refuse.TooLarge    // its body
	Limited     = refuse.Limited     // a rate; later it may go
	Exhausted   = refuse.Exhausted   // a quota, for the day or longer
	Unavailable = refuse.Unavailable // the upstream is not called at present
	GaveUp      = refuse.GaveUp      // it was tried often enough
	Timeout     = refuse.Timeout
)
