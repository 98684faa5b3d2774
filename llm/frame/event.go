package frame

import "bytes"

// An Event is the content of a server-sent event. Its slices share memory with the frame or with the buffer passed to
// ParseEvent.
type Event struct {
	Name []byte // field "event"
	Data []byte // field "data"; several lines are joined by LF
	ID   []byte
	Said bool // at least one data line; comments or a name alone are not an event
}

// ParseEvent parses a frame. It uses buf only to join several data lines. buf may be nil.
func ParseEvent(raw, buf []byte) Event {
	var e Event
	for len(raw) > 0 {
		var line []byte
		line, raw = cutLine(raw)
		name, value := field(line)
		switch string(name) {
		case "data":
			e.data(value, &buf)
		case "event":
			e.Name = value
		case "id":
			e.ID = value
		}
	}
	return e
}

func (e *Event) data(value []byte, buf *[]byte) {
	switch {
	case !e.Said:
		e.Data, e.Said = value, true
		return
	case len(*buf) == 0 || len(e.Data) == 0 || &(*buf)[0] != &e.Data[0]:
		*buf = append((*buf)[:0], e.Data...)
	}
	*buf = append(append(*buf, '\n'), value...)
	e.Data = *buf
}

// cutLine splits off the first line and removes its line end.
func cutLine(b []byte) (line, rest []byte) {
	end := index(b, 0, len(b), '\n')
	end = index(b, 0, end, '\r')
	line, rest = b[:end], b[end:]
	switch {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		return line, rest[2:]
	case len(rest) > 0:
		return line, rest[1:]
	}
	return line, nil
}

// field removes one space after the colon, as the HTML standard requires. A comment is a field without a name.
func field(line []byte) (name, value []byte) {
	name, value, _ = bytes.Cut(line, []byte(":"))
	if len(value) > 0 && value[0] == ' ' {
		value = value[1:]
	}
	return name, value
}

// AppendEvent appends an event to dst: the name, unless empty, and the data, with one data line for each line.
func AppendEvent(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for {
		line, rest := cutLine(data)
		more := len(line) < len(data)
		dst = append(append(append(dst, "data: "...), line...), '\n')
		if !more {
			return append(dst, '\n')
		}
		data = rest
	}
}
