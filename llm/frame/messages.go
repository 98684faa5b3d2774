package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// Messages cuts an AWS event stream (application/vnd.amazon.eventstream). A frame
// is a message. The zero Messages is ready for use.
//
// A prelude whose checksum is wrong, or whose lengths cannot be, means that it is
// not known where messages begin: from there on everything is one opaque frame.
type Messages struct {
	Max int // bytes; 0 means 1 MiB

	w    window
	left int  // bytes to come of a message that is too large to be held
	lost bool // what comes cannot be cut any more
}

const (
	preludeLen = 12 // total length, length of the headers, checksum of both
	trailerLen = 4  // checksum of everything before
)

// Feed hands over what has come.
func (m *Messages) Feed(p []byte) { m.w.feed(p) }

// Rest is what has come of a message that is not whole.
func (m *Messages) Rest() []byte { return m.w.Rest() }

// Lost reports whether it is not known any more where messages begin.
func (m *Messages) Lost() bool { return m.lost }

// Next cuts off the next message, if there is a whole one.
func (m *Messages) Next() (Frame, bool) {
	have := m.w.Rest()
	if len(have) == 0 || !m.lost && m.left == 0 && len(have) < preludeLen {
		m.w.keep()
		return Frame{}, false
	}
	if m.lost || m.left > 0 {
		return m.piece(len(have)), true
	}
	total, _, ok := prelude(have)
	switch {
	case !ok:
		m.lost = true
	case total > orDefault(m.Max):
		m.left = total
	case len(have) < total:
		m.w.keep()
		return Frame{}, false
	default:
		return Frame{Raw: m.w.cut(m.w.at + total)}, true
	}
	return m.piece(len(have)), true
}

// piece gives out what there is of something that is not held.
func (m *Messages) piece(have int) Frame {
	if m.lost {
		return Frame{Raw: m.w.cut(m.w.at + have), Opaque: true, More: true}
	}
	n := min(have, m.left)
	m.left -= n
	return Frame{Raw: m.w.cut(m.w.at + n), Opaque: true, More: m.left > 0}
}

// prelude reads the first bytes of a message, of which there must be enough.
func prelude(b []byte) (total, headers int, ok bool) {
	t, h := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0, 0, false
	}
	const most = 1 << 30 // fits an int everywhere; the services stay below 25 MiB
	if t > most || h > most || t < preludeLen+trailerLen+h {
		return 0, 0, false
	}
	return int(t), int(h), true
}
