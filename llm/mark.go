package llm

import (
	"bytes"

	"github.com/seed1158cd35/weir/llm/frame"
)

// Mark adds meta data to the body of an answer that a model has given to this request, or to one that asks for the same form,
// where Answer has it. All else stays as it was; so does a body that has no room for meta data, or that cannot be read.
func (r *Request) Mark(body []byte, meta map[string]string) []byte {
	name, inside := r.room()
	if name == "" || len(meta) == 0 {
		return body
	}
	add := appendMap(nil, meta)
	if !r.Stream {
		marked, _ := markObject(body, "", name, add)
		return marked
	}
	if r.Family == Converse {
		return markMessages(body, name, add)
	}
	return markEvents(body, inside, name, add, r.Family == Responses)
}

// room is the member of an answer with its meta data, and the member of a stream's event in which the answer stands.
func (r *Request) room() (name, inside string) {
	switch {
	case r.Family == OpenAI && r.Operation != "completions":
		return "metadata", ""
	case r.Family == Responses:
		return "metadata", "response"
	case r.Family == Anthropic:
		return "metadata", "message"
	case r.Family == Converse:
		return "additionalModelResponseFields", ""
	}
	return "", ""
}

// markObject adds the members of add to the object called name in a JSON text, in that called inside if it has a name.
func markObject(body []byte, inside, name string, add []byte) ([]byte, bool) {
	d, wrong := scan(body)
	if wrong != nil || len(d.nodes) == 0 {
		return body, false
	}
	var in uint32
	if inside != "" {
		if in = d.member(0, inside); in == 0 {
			return body, false
		}
	}
	if d.kind(in) != kindObject {
		return body, false
	}
	at := d.member(in, name)
	switch {
	case at == 0:
		add = append(append(appendString(nil, name), ':'), add...)
		at = in
	case d.kind(at) == kindNull:
		v := d.nodes[at]
		return splice(body, v.start, v.end, add), true
	case d.kind(at) != kindObject:
		return body, false
	default:
		add = add[1 : len(add)-1]
	}
	v := d.nodes[at]
	if v.next > at+1 {
		add = append(add[:len(add):len(add)], ',')
	}
	return splice(body, v.start+1, v.start+1, add), true
}

// splice is a new text with another in the place of a part.
func splice(body []byte, from, to uint32, text []byte) []byte {
	return append(append(append(make([]byte, 0, len(body)+len(text)), body[:from]...), text...), body[to:]...)
}

// markEvents marks the first event of a stream with an answer, or all of them.
func markEvents(body []byte, inside, name string, add []byte, all bool) []byte {
	s := frame.SSE{Max: len(body) + 1}
	s.Feed(body)
	out := make([]byte, 0, len(body)+2*len(add)+64)
	read := 0
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		read += len(f.Raw)
		e := frame.ParseEvent(f.Raw, nil)
		marked, done := e.Data, false
		if e.Said && bytes.Contains(e.Data, []byte(inside)) {
			marked, done = markObject(e.Data, inside, name, add)
		}
		if !done {
			out = append(out, f.Raw...)
			continue
		}
		if out = frame.AppendEvent(out, string(e.Name), marked); !all {
			break
		}
	}
	return append(out, body[read:]...)
}

// markMessages marks the end of a stream of Converse.
func markMessages(body []byte, name string, add []byte) []byte {
	s := frame.Messages{Max: len(body) + 1}
	s.Feed(body)
	out := bytes.NewBuffer(make([]byte, 0, len(body)+len(add)+64))
	read := 0
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		read += len(f.Raw)
		if m, err := frame.ParseMessage(f.Raw); err == nil && string(m.Event) == "messageStop" {
			if marked, done := markObject(m.Payload, "", name, add); done {
				_ = frame.WriteEvent(out, "messageStop", marked) // a buffer takes everything
				continue
			}
		}
		out.Write(f.Raw)
	}
	out.Write(body[read:])
	return out.Bytes()
}
