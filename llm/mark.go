package llm

import (
	"bytes"

	"github.com/seed1158cd35/weir/llm/frame"
)

// Mark adds metadata to a model's answer to this request, or to an answer in the same format. It writes the fields that
// Answer writes and changes nothing else. It returns the body unchanged if the format has no field for metadata or the
// body cannot be parsed.
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

// room returns the name of the member for metadata, and the member of a stream event that contains the answer.
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

// markObject adds the members of the JSON object add to the member name of a JSON text. If inside is not empty, name is
// a member of the object inside. It reports whether it changed the body.
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

// splice returns a copy of body in which text replaces body[from:to].
func splice(body []byte, from, to uint32, text []byte) []byte {
	return append(append(append(make([]byte, 0, len(body)+len(text)), body[:from]...), text...), body[to:]...)
}

// markEvents marks the first event of a stream that contains an answer, or every such event if all is true.
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

// markMessages marks the messageStop event of a Converse stream.
func markMessages(body []byte, name string, add []byte) []byte {
	s := frame.Messages{Max: len(body) + 1}
	s.Feed(body)
	out := bytes.NewBuffer(make([]byte, 0, len(body)+len(add)+64))
	read := 0
	for f, ok := s.Next(); ok; f, ok = s.Next() {
		read += len(f.Raw)
		if m, err := frame.ParseMessage(f.Raw); err == nil && string(m.Event) == "messageStop" {
			if marked, done := markObject(m.Payload, "", name, add); done {
				_ = frame.WriteEvent(out, "messageStop", marked) // a bytes.Buffer returns no errors
				continue
			}
		}
		out.Write(f.Raw)
	}
	out.Write(body[read:])
	return out.Bytes()
}
