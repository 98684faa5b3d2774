package llm

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/internal/paths"
)

// recognizeAny is like Recognize, but accepts any spelling of a path: unnecessary escapes, trailing slashes, parameters,
// capital letters. A server may accept such a path for a model call, although no SDK writes it. The route's Path is the
// spelling to send, so that the server gets the path that was recognized. A path in the SDKs' spelling stays unchanged.
func recognizeAny(rawPath, rawQuery string) (Route, bool) {
	plain, known := Recognize(http.MethodPost, rawPath, rawQuery)
	wide := usual(paths.Widest(rawPath))
	if wide == rawPath {
		return plain, known
	}
	r, ok := Recognize(http.MethodPost, wide, rawQuery)
	if !ok || known && r.Family == plain.Family && r.Operation == plain.Operation && r.Stream == plain.Stream && r.Model == plain.Model {
		return plain, known
	}
	if r.from < r.to { // a name with a slash is one segment
		name := (&Request{Route: r}).escape(r.Model)
		r.path, r.to = r.path[:r.from]+name+r.path[r.to:], r.from+len(name)
	}
	return r, true
}

// RecognizeBelow recognizes a path that is sent after the path of an upstream's URL. That base may contain a part that
// identifies the call: /v1, or the model. The path of the returned route does not include the base. RecognizeBelow
// accepts any method and any spelling.
func RecognizeBelow(base, rawPath, rawQuery string) (Route, bool) {
	if base == "" {
		return recognizeAny(rawPath, rawQuery)
	}
	for _, base := range []string{base, usual(paths.Widest(base))} {
		if r, ok := recognizeAny(base+rawPath, rawQuery); ok && strings.HasPrefix(r.path, base+"/") {
			r.path = r.path[len(base):]
			if r.from, r.to = r.from-len(base), r.to-len(base); r.from < 0 {
				r.above, r.from, r.to = r.Model != "", 0, 0
			}
			return r, true
		}
	}
	return recognizeAny(rawPath, rawQuery)
}

// Path returns the raw path of the route.
func (r Route) Path() string { return r.path }

// usualWords maps the path segments of model calls from lower case to their usual spelling.
var usualWords = map[string]string{"tunedmodels": "tunedModels"}

// usualVerbs maps Google's verbs from lower case to their usual spelling.
var usualVerbs = make(map[string]string)

func init() {
	for _, s := range suffixes {
		for w := range strings.SplitSeq(strings.Trim(s.end, "/"), "/") {
			usualWords[w] = w
		}
	}
	for _, w := range []string{"v1", "v1beta", "openai", "models", "endpoints", "publishers", "anthropic", "deployments", "model", "converse", "converse-stream", "invoke", "invoke-with-response-stream", "count-tokens"} {
		usualWords[w] = w
	}
	for _, v := range []string{"generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents", "countTokens", "rawPredict", "streamRawPredict"} {
		usualVerbs[strings.ToLower(v)] = v
	}
}

// usual changes an unescaped path to the SDKs' spelling. Known words get their usual spelling, and everything else is
// escaped.
func usual(path string) string {
	if path == "" || path == "/" {
		return path
	}
	all := strings.Split(path[1:], "/")
	named := false // the previous segment announces a model's name
	for i, s := range all {
		name, verb, colon := cutLast(s, ":")
		word, known := usualWords[strings.ToLower(s)]
		switch v := usualVerbs[strings.ToLower(verb)]; {
		case named:
			all[i] = url.PathEscape(s)
		case known:
			all[i] = word
		case colon && v != "":
			all[i] = url.PathEscape(name) + ":" + v
		default:
			all[i] = url.PathEscape(s)
		}
		named = all[i] == "deployments" || all[i] == "model"
	}
	return "/" + strings.Join(all, "/")
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}
