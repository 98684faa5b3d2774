// Package llm implements the request and response formats of language model APIs. It reads a request's model,
// parameters, prompt and size, reads errors and usage, and writes answers and errors that weir produces itself.
package llm

import (
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// A Family is a wire format. Any model of a family can serve the family's requests, at any provider or region.
type Family string

const (
	OpenAI    Family = "openai"           // chat completions, also used by all compatible servers
	Responses Family = "openai-responses" // OpenAI's newer Responses API
	Anthropic Family = "anthropic"        // Messages API
	Gemini    Family = "gemini"           // generateContent of the Gemini API and of Vertex AI
	Converse  Family = "bedrock-converse" // Bedrock's format, the same for all of its models
	Invoke    Family = "bedrock-invoke"   // Bedrock's InvokeModel, in the format of the model's vendor
)

// A Route is what weir reads from a request's path and query.
type Route struct {
	Family    Family
	Operation string // "chat", "responses", "embeddings", "messages", "count_tokens", "generate", "converse", "invoke", "completions", "other"
	Model     string // if the path contains it, as for Gemini and Bedrock
	Stream    bool   // the path asks for a stream; in the other families the body does
	Generates bool   // the response is generated text, so another model or a stored text can replace it

	path, query string // raw, as received
	from, to    int    // position of the model's name in path; equal if it is not there
	above       bool   // the upstream's base path contains the model's name
	array       bool   // a Gemini stream that is one JSON array instead of events
}

// Usage is the number of tokens that a response reports.
type Usage struct {
	Input      int64 // all tokens read, cached or not
	Output     int64 // all tokens written, including reasoning
	CacheRead  int64 // part of Input that was read from the provider's cache
	CacheWrite int64 // part of Input that was written to the provider's cache
	WriteHour  int64 // part of CacheWrite that is cached for an hour, not for minutes
	Said       bool  // whether the response reported usage

	// Tier is the service tier that the response reports, under the provider's name. Several tiers are joined by "+". It
	// is empty if the response reports none.
	Tier string
}

// Total is the number of tokens that token limits count.
func (u Usage) Total() int64 { return u.Input + u.Output }

// An Answer is the content of a response, independent of the family's format.
type Answer struct {
	Text  string
	Model string // the model that the response names
	ID    string // empty: an ID is generated
	Usage Usage
	Meta  map[string]string // written where the family has a field for it: see Request.Answer

	Created time.Time // zero means now
}

// A Failure is an error that weir itself produces. Route.Refuse writes it in the family's format.
type Failure struct {
	Status  int // HTTP status
	Kind    Kind
	Message string
	Final   bool // the client must not retry

	RetryAfter time.Duration // time after which the client may retry, for families with a field for it in the body; 0 if unknown
	ID         string        // request ID, for families whose errors contain it; may be empty
}

// FailureOf returns the failure for an error of weir and the request with that id.
func FailureOf(f *refuse.Facts, id string) Failure {
	return Failure{Status: f.Status, Kind: f.Kind(), Message: f.Message, Final: f.Final, RetryAfter: f.Wait, ID: id}
}

// A Kind is the cause of an error, independent of the family's code. Programs use it to write their own errors with
// Route.Refuse.
type Kind = refuse.Kind

const (
	Invalid     = refuse.Invalid     // the request is invalid
	Stranger    = refuse.Stranger    // the caller cannot be authenticated
	TooLarge    = refuse.TooLarge    // the body is too large
	Limited     = refuse.Limited     // a rate limit; a later retry can succeed
	Exhausted   = refuse.Exhausted   // a quota for a day or longer is used up
	Unavailable = refuse.Unavailable // weir currently sends no calls to the upstream
	GaveUp      = refuse.GaveUp      // all attempts failed
	Timeout     = refuse.Timeout
)
