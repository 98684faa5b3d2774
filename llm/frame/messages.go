package frame

import (
	"encoding/binary"
	"hash/crc32"
)

// Messages splits an AWS event stream (application/vnd.amazon.eventstream). A frame is a message. The zero Messages is
// ready to use.
//
// If the checksum or the lengths of a prelude are invalid, the position of the next message is unknown. Everything from
// there on is one opaque frame. Messages is not safe for concurrent use.
type Messages struct {
	Max int // in bytes; 0 means 1 MiB

	w    window
	left int  // remaining bytes of a message that is too large to keep
	lost bool // message boundaries are unknown from here on
}

const (
	preludeLen = 12 // total length, length of the headers, checksum of both
	trailerLen = 4  // checksum of all preceding bytes
)

// Feed adds received bytes.
func (m *Messages) Feed(p []byte) { m.w.feed(p) }

// Rest returns the received part of an incomplete message.
func (m *Messages) Rest() []byte { return m.w.Rest() }

// Lost reports whether message boundaries are unknown from here on.
func (m *Messages) Lost() bool { return m.lost }

// Next returns the next message if it is complete.
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

// piece returns the available part of an opaque frame.
func (m *Messages) piece(have int) Frame {
	if m.lost {
		return Frame{Raw: m.w.cut(m.w.at + have), Opaque: true, More: true}
	}
	n := min(have, m.left)
	m.left -= n
	return Frame{Raw: m.w.cut(m.w.at + n), Opaque: true, More: m.left > 0}
}

// prelude decodes the prelude of a message. b must have at least preludeLen bytes.
func prelude(b []byte) (total, headers int, ok bool) {
	t, h := binary.BigEndian.Uint32(b), binary.BigEndian.Uint32(b[4:])
	if crc32.ChecksumIEEE(b[:8]) != binary.BigEndian.Uint32(b[8:]) {
		return 0, 0, false
	}
	const most = 1 << 30 // fits an int on all platforms; AWS services stay below 25 MiB
	if t > most || h > most || t < preludeLen+trailerLen+h {
		return 0, 0, false
	}
	return int(t), int(h), true
}
