package llmsim

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// A place is the meaning of a path. The zero op means an unknown path.
type place struct {
	family        llm.Family
	op, model     string
	stream, array bool
}

// route interprets a path. It ignores the beginning, because compatible servers have various prefixes.
func route(r *http.Request) place {
	path := r.URL.EscapedPath()
	for _, x := range []struct {
		method, end string
		to          place
	}{
		{"POST", "/chat/completions", place{family: llm.OpenAI, op: "chat"}},
		{"POST", "/embeddings", place{family: llm.OpenAI, op: "embeddings"}},
		{"POST", "/responses", place{family: llm.Responses, op: "responses"}},
		{"POST", "/messages", place{family: llm.Anthropic, op: "messages"}},
		{"POST", "/messages/count_tokens", place{family: llm.Anthropic, op: "count_tokens"}},
	} {
		if r.Method == x.method && strings.HasSuffix(path, x.end) {
			return x.to
		}
	}
	if at, ok := bedrock(r.Method, path); ok {
		return at
	}
	if at, ok := google(r, path); ok {
		return at
	}
	return list(r, path)
}

// list matches the list of models, which two families have under the same path.
func list(r *http.Request, path string) place {
	at := place{family: familyOf(r)}
	_, rest, ok := strings.Cut(path, "/models")
	if ok && r.Method == http.MethodGet && (rest == "" || rest[0] == '/') {
		at.op, at.model = "models", unescape(strings.TrimPrefix(rest, "/"))
	}
	return at
}

// familyOf guesses the family by the key's header.
func familyOf(r *http.Request) llm.Family {
	switch h := r.Header; {
	case h.Get("Anthropic-Version") != "" || h.Get("X-Api-Key") != "":
		return llm.Anthropic
	case h.Get("X-Goog-Api-Key") != "" || r.URL.Query().Has("key") || strings.HasPrefix(r.URL.Path, "/v1beta"):
		return llm.Gemini
	case strings.HasPrefix(h.Get("Authorization"), "AWS4-"):
		return llm.Converse
	}
	return llm.OpenAI
}

func unescape(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

// bedrock matches /model/{id}/{operation} with an escaped ID.
func bedrock(method, path string) (at place, ok bool) {
	parts := strings.Split(strings.TrimPrefix(path, "/"), "/")
	if n := len(parts); n < 3 || parts[n-3] != "model" || method != http.MethodPost {
		return at, false
	}
	parts = parts[len(parts)-3:]
	switch parts[2] {
	case "converse", "converse-stream":
		at = place{family: llm.Converse, op: "converse"}
	case "invoke", "invoke-with-response-stream":
		at = place{family: llm.Invoke, op: "invoke"}
	default:
		return at, false
	}
	at.model, at.stream = unescape(parts[1]), strings.HasSuffix(parts[2], "-stream")
	return at, true
}

// google matches {version}/models/{model}:{method}, with the project before it for Vertex.
func google(r *http.Request, path string) (at place, ok bool) {
	i := strings.LastIndex(path, "/models/")
	if i < 0 || r.Method != http.MethodPost {
		return at, false
	}
	model, method, _ := strings.Cut(unescape(path[i+len("/models/"):]), ":")
	at = place{family: llm.Gemini, model: model}
	switch method {
	case "generateContent":
		at.op = "generate"
	case "streamGenerateContent":
		at.op, at.stream = "generate", true
		at.array = r.URL.Query().Get("alt") != "sse"
	case "countTokens":
		at.op = "count_tokens"
	}
	return at, true
}
