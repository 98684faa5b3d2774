package llm

import (
	"net/url"
	"slices"
	"strings"
)

// An edit replaces a part of the body with text. The zero edit changes nothing.
type edit struct {
	from, to uint32
	text     string
}

// Body returns the body to send: the received body with the change made by AskUsage.
func (r *Request) Body() []byte { return r.edited(edit{}) }

// For returns the raw path, raw query and body of the request for another model of the family. Only the model's name
// changes. If model is empty or the request's own model, For changes nothing.
func (r *Request) For(model string) (rawPath, rawQuery string, body []byte) {
	if model == "" || model == r.Model {
		return r.path, r.query, r.Body()
	}
	rawPath = r.path
	if r.from < r.to {
		rawPath = r.path[:r.from] + r.escape(model) + r.path[r.to:]
	}
	if r.at[fModel] == 0 && !r.Nameless() {
		return rawPath, r.query, r.Body()
	}
	r = r.open()
	n := r.at[fModel]
	if n == 0 {
		n = r.doc.member(0, "model") // even if it is null
	}
	if n == 0 {
		return rawPath, r.query, r.edited(r.insert(0, `"model":`+string(appendString(nil, model))))
	}
	return rawPath, r.query, r.edited(r.replace(n, string(appendString(nil, model))))
}

// Nameless reports whether the body does not name a model, although it could. Some servers have only one model.
func (r *Request) Nameless() bool {
	switch r.Family {
	case OpenAI, Responses, Anthropic:
		return r.Model == "" && r.Operation != "other" && r.at[fTemplate] == 0
	}
	return false
}

// escape encodes a model's name for the path. AWS encodes all reserved characters and signs the encoded path.
func (r *Request) escape(model string) string {
	switch r.Family {
	case Converse, Invoke:
		return strings.ReplaceAll(url.QueryEscape(model), "+", "%20")
	case Gemini:
		model = strings.TrimPrefix(model, "models/")
	}
	return url.PathEscape(model)
}

// AskUsage makes a stream of OpenAI's chat or completions report usage, unless it already does, and returns the changed
// body. Body and For then also include the change. The rest of the body stays the same. AddedUsage reports whether
// AskUsage made the change. Other requests are not changed.
func (r *Request) AskUsage() []byte {
	r.asks()
	return r.Body()
}

// Asking is like AskUsage, but returns the body in parts and copies none of it.
func (r *Request) Asking() [][]byte {
	if r.asks(); r.ask == (edit{}) {
		return [][]byte{r.doc.body}
	}
	return [][]byte{r.doc.body[:r.ask.from], []byte(r.ask.text), r.doc.body[r.ask.to:]}
}

func (r *Request) asks() {
	if r.Stream && !r.ReportsUsage && !r.AddedUsage && r.Family == OpenAI && r.Generates {
		r.ask, r.AddedUsage = r.include(), true
	}
}

func (r *Request) include() edit {
	const yes = `"include_usage":true`
	options := r.doc.member(0, "stream_options") // even if it is null
	if options == 0 {
		return r.insert(0, `"stream_options":{`+yes+`}`)
	}
	if r.doc.kind(options) != kindObject {
		return r.replace(options, "{"+yes+"}")
	}
	if n := r.doc.member(options, "include_usage"); n != 0 {
		return r.replace(n, "true")
	}
	return r.insert(options, yes)
}

// insert returns the edit that adds a first member to an object.
func (r *Request) insert(object uint32, member string) edit {
	v := r.doc.nodes[object]
	if v.next > object+1 {
		member += ","
	}
	return edit{from: v.start + 1, to: v.start + 1, text: member}
}

func (r *Request) replace(n uint32, text string) edit {
	v := r.doc.nodes[n]
	if v.kind == kindString {
		v.start, v.end = v.start-1, v.end+1
	}
	return edit{from: v.start, to: v.end, text: text}
}

// edited returns the body with two edits that must not overlap: e and the edit made by AskUsage.
func (r *Request) edited(e edit) []byte {
	if e == (edit{}) && r.ask == (edit{}) {
		return r.doc.body
	}
	first, second := e, r.ask
	if second.from < first.from {
		first, second = second, first
	}
	b := r.doc.body
	return slices.Concat(b[:first.from], []byte(first.text), b[first.to:second.from], []byte(second.text), b[second.to:])
}
