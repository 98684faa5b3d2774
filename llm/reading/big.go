package reading

import (
	"bytes"

	"github.com/seed1158cd35/weir/llm/frame"
)

// A bigEvent reads the parts of a server-sent event or array element that is too large to keep in memory. The last event
// of a Response, for example, repeats the entire answer including images, and contains the usage.
type bigEvent struct {
	open   bool // more parts follow
	data   bool // after the start of the data
	ended  bool // after the end of the data
	broken bool // unreadable
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

// begun reports whether a JSON text has started.
func (r *Reader) begun() bool { return r.json.depth > 0 || r.json.state != atValue }

// piece finds the data line and reads it to its end. The data line starts in the first part unless other lines are
// unusually long.
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
