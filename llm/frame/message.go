package frame

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// A Message is the content of an AWS event stream message. Its slices share memory with the frame.
type Message struct {
	Type      []byte // ":message-type": "event", "exception" or "error"
	Event     []byte // ":event-type"
	Exception []byte // ":exception-type", such as "throttlingException"
	ErrorCode []byte // ":error-code" of messages with type "error"
	ErrorText []byte // ":error-message"
	Payload   []byte
}

// Errors returned by ParseMessage.
var (
	ErrChecksum = errors.New("event stream message: a checksum does not match")
	errLength   = errors.New("event stream message: its lengths do not fit")
	errHeader   = errors.New("event stream message: a header cannot be read")
)

// ParseMessage parses a complete message and verifies its checksums. It does not allocate memory.
func ParseMessage(raw []byte) (Message, error) {
	var m Message
	if len(raw) < preludeLen+trailerLen {
		return m, errLength
	}
	total, headers, ok := prelude(raw)
	switch end := len(raw) - trailerLen; {
	case !ok:
		return m, ErrChecksum
	case total != len(raw):
		return m, errLength
	case crc32.ChecksumIEEE(raw[:end]) != binary.BigEndian.Uint32(raw[end:]):
		return m, ErrChecksum
	default:
		m.Payload = raw[preludeLen+headers : end]
	}
	return m, m.readHeaders(raw[preludeLen : preludeLen+headers])
}

func (m *Message) readHeaders(b []byte) error {
	for len(b) > 0 {
		name, value, rest, ok := cutHeader(b)
		if !ok {
			return errHeader
		}
		b = rest
		switch string(name) {
		case ":message-type":
			m.Type = value
		case ":event-type":
			m.Event = value
		case ":exception-type":
			m.Exception = value
		case ":error-code":
			m.ErrorCode = value
		case ":error-message":
			m.ErrorText = value
		}
	}
	return nil
}

// cutHeader reads one header. The value is nil unless its type is string.
func cutHeader(b []byte) (name, value, rest []byte, ok bool) {
	n := 1 + int(b[0])
	if len(b) < n+1 || n == 1 {
		return nil, nil, nil, false
	}
	name, kind, b := b[1:n], b[n], b[n+1:]
	size, ok := fixed(kind)
	if !ok {
		return nil, nil, nil, false
	}
	if size < 0 {
		if len(b) < 2 {
			return nil, nil, nil, false
		}
		size, b = int(binary.BigEndian.Uint16(b)), b[2:]
	}
	if len(b) < size {
		return nil, nil, nil, false
	}
	if kind == typeString {
		value = b[:size]
	}
	return name, value, b[size:], true
}

const typeString = 7

// fixed returns the length of values of a type, or -1 if a length precedes the value.
func fixed(kind byte) (size int, ok bool) {
	sizes := [...]int{0, 0, 1, 2, 4, 8, -1, -1, 8, 16} // true, false, int8 to int64, bytes, string, time, UUID
	if int(kind) >= len(sizes) {
		return 0, false
	}
	return sizes[kind], true
}

// WriteEvent writes a message of an event type with a JSON payload.
func WriteEvent(w io.Writer, event string, payload []byte) error {
	return write(w, payload, "event", ":event-type", event)
}

// WriteException writes a message that ends a stream with an error, as Bedrock does. The first letter of the exception's
// name is lower case.
func WriteException(w io.Writer, exception string, payload []byte) error {
	return write(w, payload, "exception", ":exception-type", exception)
}

func write(w io.Writer, payload []byte, kind, name, value string) error {
	var h eventstream.Headers
	h.Set(name, eventstream.StringValue(value))
	h.Set(":content-type", eventstream.StringValue("application/json"))
	h.Set(":message-type", eventstream.StringValue(kind))
	return encode(w, eventstream.Message{Headers: h, Payload: payload})
}

// encode writes the message with one call of Write, or nothing if encoding fails.
func encode(w io.Writer, m eventstream.Message) error {
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, m); err != nil {
		return err
	}
	_, err := w.Write(b.Bytes())
	return err
}
