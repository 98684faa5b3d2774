package reading

import (
	"bytes"

	"github.com/seed1158cd35/weir/llm/frame"
)

// A bigEvent reads a server-sent event, or an element of an array, that is too
// large to be held, while its pieces pass by: the last event of a Response repeats
// all of the answer, pictures included, and has the usage.
type bigEvent struct {
	open   bool // more of it is to come
	data   bool // past the beginning of its data
	ended  bool // past the end of them
	broken bool // it cannot be read
}

func (b *bigEvent) read(r *Reader, f frame.Frame) {
	if !b.open {
		*b = bigEvent{}
		r.ev.reset()
		r.json.reset(treeOf(r.family))
	}
	b.open = f.More
	switch r.form {
	case events:
		b.piece(r, f.Raw)
	case array:
		b.data = true
		if !r.begun() {
			f.Raw = bytes.TrimLeft(f.Raw, "[, \t\r\n")
		}
		r.json.feed(f.Raw)
	}
	if !f.More && b.data {
		r.eventEnd()
	}
}

// begun reports whether a text has begun.
func (r *Reader) begun() bool { return r.json.depth > 0 || r.json.state != atValue }

// piece finds the line of data, which is within the first piece unless there are
// other lines of unusual length, and reads it to its end.
func (b *bigEvent) piece(r *Reader, raw []byte) {
	if !b.data && !b.broken {
		raw = b.begin(r, raw)
	}
	if !b.data || b.ended {
		return
	}
	if i := bytes.IndexAny(raw, "\r\n"); i >= 0 {
		raw, b.ended = raw[:i], true
	}
	r.json.feed(raw)
}

func (b *bigEvent) begin(r *Reader, raw []byte) []byte {
	for len(raw) > 0 {
		line, rest, _ := bytes.Cut(raw, []byte("\n"))
		if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
			b.data = true
			return raw[len(line)-len(data):]
		}
		r.ev.name(frame.ParseEvent(line, nil).Name)
		raw = rest
	}
	b.broken = true
	return nil
}
