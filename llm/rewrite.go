package llm

import (
	"net/url"
	"slices"
	"strings"
)

// An edit puts text in the place of a part of the body; the zero edit changes nothing.
type edit struct {
	from, to uint32
	text     string
}

// Body is the body to send: as it came, but for what AskUsage has added.
func (r *Request) Body() []byte { return r.edited(edit{}) }

// For is the same request for another model of the family: its raw path, raw query and
// body. Only where the model is named do they differ from what came. "" and the
// request's own model change nothing.
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

// Nameless reports whether the body could say which model is to answer, and does not: its server may have
// but one.
func (r *Request) Nameless() bool {
	switch r.Family {
	case OpenAI, Responses, Anthropic:
		return r.Model == "" && r.Operation != "other" && r.at[fTemplate] == 0
	}
	return false
}

// escape writes a model as a part of the path. AWS encodes all but unreserved
// characters, and signs what it has encoded.
func (r *Request) escape(model string) string {
	switch r.Family {
	case Converse, Invoke:
		return strings.ReplaceAll(url.QueryEscape(model), "+", "%20")
	case Gemini:
		model = strings.TrimPrefix(model, "models/")
	}
	return url.PathEscape(model)
}

// AskUsage makes a stream of OpenAI's chat or completions report what it used, unless
// it does already, and returns the body that asks for it; Body and For have it too from
// then on. All else stays as it came. If AddedUsage then says so, the caller has not
// asked: see there. Other requests are left alone.
func (r *Request) AskUsage() []byte {
	r.asks()
	return r.Body()
}

// Asking is AskUsage, whose body is in parts: none of it is copied.
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

// include is the edit that asks for usage.
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

// insert is the edit that gives an object one more member, its first.
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

// edited is the body with two edits that do not overlap: that of AskUsage and one more.
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
