package llm

import (
	"net/http"
	"net/url"
	"strings"
)

// Recognize determines from the method, path and query which call a request is. Path and query are raw, without the
// question mark. It returns false if the request does not call a model, for example for a listing, a file or a batch. A
// caller that knows the family can use Default then.
//
// Servers use their own prefixes for the paths of OpenAI and Anthropic, so these are recognized by suffix. Azure's
// prefix contains the model.
func Recognize(method, rawPath, rawQuery string) (Route, bool) {
	if method != http.MethodPost {
		return Route{}, false
	}
	r, ok := bedrock(rawPath)
	if !ok {
		r, ok = google(rawPath, rawQuery)
	}
	if !ok {
		r, ok = bySuffix(rawPath)
	}
	r.query = rawQuery
	return r, ok
}

// Default returns the route of a request of family f that does not call a model. Its body may be anything.
func Default(f Family) Route { return Route{Family: f, Operation: "other"} }

// suffixes lists the ends of paths. A longer path comes before its own suffix.
var suffixes = []struct {
	end string
	is  Route
}{
	{"/chat/completions", Route{Family: OpenAI, Operation: "chat", Generates: true}},
	{"/completions", Route{Family: OpenAI, Operation: "completions", Generates: true}},
	{"/embeddings", Route{Family: OpenAI, Operation: "embeddings"}},
	{"/responses/input_tokens", Route{Family: Responses, Operation: "count_tokens"}},
	{"/responses", Route{Family: Responses, Operation: "responses", Generates: true}},
	{"/v1/messages/count_tokens", Route{Family: Anthropic, Operation: "count_tokens"}},
	{"/v1/messages", Route{Family: Anthropic, Operation: "messages", Generates: true}},
}

func bySuffix(path string) (Route, bool) {
	for _, s := range suffixes {
		if strings.HasSuffix(path, s.end) {
			r := s.is
			r.path = path
			r.deployment(len(path) - len(s.end))
			return r, true
		}
	}
	return Route{}, false
}

// deployment reads the model from Azure's /openai/deployments/NAME. NAME ends at end.
func (r *Route) deployment(end int) {
	const before = "/deployments/"
	if i := strings.LastIndex(r.path[:end], before); i >= 0 && r.Family == OpenAI {
		r.named(i+len(before), end)
	}
}

// named records the model and its position in the path. It reports false if the name is empty or not valid.
func (r *Route) named(from, to int) bool {
	model, err := url.PathUnescape(r.path[from:to])
	if err != nil || model == "" {
		return false
	}
	r.Model, r.from, r.to = model, from, to
	return true
}

// bedrock recognizes /model/ID/OPERATION.
func bedrock(path string) (Route, bool) {
	const before = "/model/"
	i, end := strings.Index(path, before), strings.LastIndexByte(path, '/')
	if i < 0 || end <= i+len(before) {
		return Route{}, false
	}
	r := Route{path: path}
	if !r.named(i+len(before), end) {
		return Route{}, false
	}
	switch path[end+1:] {
	case "converse", "converse-stream":
		r.Family, r.Operation, r.Generates = Converse, "converse", true
	case "invoke", "invoke-with-response-stream":
		r.Family, r.Operation, r.Generates = Invoke, "invoke", writes(r.Model)
	case "count-tokens":
		r.Family, r.Operation = Converse, "count_tokens"
	default:
		return Route{}, false
	}
	r.Stream = strings.HasSuffix(path, "-stream")
	return r, true
}

// writes reports whether a Bedrock model generates text, judging by its name.
func writes(model string) bool {
	for _, other := range []string{"embed", "rerank", "image", "stability.", "stable-", "canvas", "reel", "luma.", "twelvelabs.marengo", "sonic"} {
		if strings.Contains(model, other) {
			return false
		}
	}
	return true
}

// google recognizes .../models/MODEL:verb of the Gemini API and of Vertex AI. Vertex AI also serves Anthropic models in
// Anthropic's format.
func google(path, query string) (Route, bool) {
	slash := strings.LastIndexByte(path, '/')
	colon, verb := lastColon(path)
	if slash < 0 || colon <= slash+1 {
		return Route{}, false
	}
	switch parent := path[:slash]; parent[strings.LastIndexByte(parent, '/')+1:] {
	case "models", "tunedModels", "endpoints":
	default:
		return Route{}, false
	}
	r := Route{Family: Gemini, path: path}
	return r, r.named(slash+1, colon) && r.verb(verb, query)
}

// lastColon returns the position of the colon before the path's verb, and the verb. Some clients encode the colon.
func lastColon(path string) (at int, verb string) {
	if i := strings.LastIndexByte(path, ':'); i >= 0 {
		return i, path[i+1:]
	}
	for _, colon := range []string{"%3A", "%3a"} {
		if i := strings.LastIndex(path, colon); i >= 0 {
			return i, path[i+len(colon):]
		}
	}
	return -1, ""
}

func (r *Route) verb(verb, query string) bool {
	switch verb {
	case "generateContent":
		r.Operation, r.Generates = "generate", true
	case "streamGenerateContent":
		r.Operation, r.Generates, r.Stream, r.array = "generate", true, true, !sse(query)
	case "embedContent", "batchEmbedContents":
		r.Operation = "embeddings"
	case "countTokens":
		r.Operation = "count_tokens"
	case "rawPredict", "streamRawPredict":
		r.Family, r.Operation, r.Generates = Anthropic, "messages", true
		return strings.Contains(r.path[:r.from], "/publishers/anthropic/")
	default:
		return false
	}
	return true
}

// sse reports whether a query asks for server-sent events instead of an array.
func sse(query string) bool {
	for p := range strings.SplitSeq(query, "&") {
		if p == "alt=sse" || p == "$alt=sse" || p == "%24alt=sse" {
			return true
		}
	}
	return false
}
