package classify

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/outcome"
)

// ErrorEvent is the code of a response whose stream reported an error without a code. CutStream is the code of one whose last
// frame is incomplete or missing.
const (
	ErrorEvent = "error event"
	CutStream  = "cut"
)

// A Stream looks for an error in the body of a response that began as a success. In server-sent events it recognizes an event
// "error" and an error object. In lines of JSON it recognizes an error object, and in an AWS event stream an exception or error. It
// recognizes a status in the last frame of gRPC-Web, an error in the last frame of Connect, and an error that is the last of several
// JSON values. Feed it the body while it passes.
// It keeps a few kilobytes at most, and is not safe for concurrent use.
type Stream struct {
	header http.Header
	feed   func(*Stream, []byte)
	failed outcome.Outcome // zero until an error is found

	// For streams of lines.
	events bool   // server-sent events
	line   []byte // the part that is kept
	marked bool   // the event has the type "error"
	text   []byte // the event's first line of data
	cr     bool   // the previous byte was CR

	// For streams of frames.
	frame frameKind
	head  []byte // of the frame: its prelude, and the part of its content that is read
	need  int    // bytes of head that are still missing
	skip  int64  // bytes until the next frame
	phase uint8
	ended bool   // the last frame has arrived, or the format has none
	text4 []byte // of base64: the bytes of an incomplete group

	foreign bool // the body is not in the format of its media type
	sniffed bool // the media type is general: only the checksum of the first prelude shows that the body is an AWS event stream

	values valueScan
}

// A frameKind is a format of frames.
type frameKind uint8

const (
	awsFrames frameKind = iota
	grpcWebFrames
	connectFrames
)

// mostLine is the number of bytes kept of a line or a frame.
const mostLine = 4 << 10

// NewStream returns a Stream for a response with this header, or nil if its format has no known errors.
func NewStream(h http.Header) *Stream {
	if e := first(h, "Content-Encoding"); e != "" && !strings.EqualFold(e, "identity") {
		return nil
	}
	kind := mediaType(h)
	s := &Stream{header: h, feed: (*Stream).lines}
	switch {
	case kind == "text/event-stream":
		s.events = true
	case kind == "application/x-ndjson", kind == "application/ndjson", kind == "application/jsonl", kind == "application/x-jsonl", kind == "application/jsonlines",
		kind == "application/x-jsonlines", kind == "application/stream+json", kind == "application/json-seq":
		if isStored(h) {
			return nil
		}
	case kind == "application/vnd.amazon.eventstream":
		s.feed, s.frame, s.need, s.ended = (*Stream).frames, awsFrames, awsPrelude, true
	case maybeFrames(h, kind):
		s.feed, s.frame, s.need, s.ended, s.sniffed = (*Stream).frames, awsFrames, awsPrelude, true, true
	case strings.HasPrefix(kind, "application/grpc-web"):
		s.feed, s.frame, s.need, s.ended = (*Stream).frames, grpcWebFrames, grpcPrelude, h["Grpc-Status"] != nil
		if strings.HasPrefix(kind, "application/grpc-web-text") {
			s.feed = (*Stream).base64
		}
	case strings.HasPrefix(kind, "application/connect+"):
		s.feed, s.frame, s.need = (*Stream).frames, connectFrames, grpcPrelude
	case streamsValues(h):
		s.feed = (*Stream).feedValues
	default:
		return nil
	}
	return s
}

// maybeFrames reports whether a body of a general media type may be an AWS event stream. SelectObjectContent sends such bodies
// (application/octet-stream). Stored objects, which have a tag or a date, may contain old streams.
func maybeFrames(h http.Header, kind string) bool {
	switch kind {
	case "":
		return h["X-Amz-Request-Id"] != nil
	case "application/octet-stream", "binary/octet-stream", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		return !isStored(h)
	}
	return false
}

// isStored reports whether a body is a stored document or a part of one, in which errors are data.
func isStored(h http.Header) bool {
	return h["Etag"] != nil || h["Last-Modified"] != nil || h["Content-Range"] != nil || h["Content-Disposition"] != nil
}

// Feed reads the next bytes of the body.
func (s *Stream) Feed(b []byte) {
	if s.failed.Class == outcome.Unknown && !s.foreign {
		s.feed(s, b)
	}
}

// Failed returns the outcome of the error found so far. ok is false if there is none.
func (s *Stream) Failed() (o outcome.Outcome, ok bool) {
	return s.failed, s.failed.Class != outcome.Unknown
}

// End processes the end of a complete body: the last line may lack a line end, but a frame that is cut or missing is an error.
func (s *Stream) End() {
	switch {
	case s.sniffed: // too short
	case s.values.n > 0:
		if s.values.last && s.failed.Class == outcome.Unknown && !s.foreign {
			s.fail(s.text)
		}
	case s.need == 0: // a stream of lines
		s.Feed([]byte("\n\n"))
	case s.failed.Class == outcome.Unknown && !s.foreign && (!s.ended || s.skip > 0 || len(s.head) > 0):
		s.failed = outcome.Outcome{Class: outcome.Failed, Code: CutStream}
	}
}

// base64 decodes the frames of gRPC-Web in text, whose parts may have padding.
func (s *Stream) base64(b []byte) {
	for _, c := range b {
		if c <= ' ' {
			continue
		}
		if s.text4 = append(s.text4, c); len(s.text4) < 4 {
			continue
		}
		var three [3]byte
		n, err := base64.StdEncoding.Decode(three[:], s.text4)
		if s.text4 = s.text4[:0]; err != nil {
			s.ignore()
			return
		}
		s.frames(three[:n])
	}
}

// ignore ends the reading of a body that is not in the format of its media type.
func (s *Stream) ignore() { s.foreign = true }

// lines reads lines that end with CR, LF or both.
func (s *Stream) lines(b []byte) {
	for len(b) > 0 && s.failed.Class == outcome.Unknown {
		i := bytes.IndexAny(b, "\r\n")
		part := b
		if i >= 0 {
			part = b[:i]
		}
		if room := mostLine - len(s.line); len(part) > room {
			part = part[:room]
		}
		s.line = append(s.line, part...)
		if i < 0 {
			return
		}
		if end := b[i]; end == '\r' || i > 0 || !s.cr { // LF after CR belongs to the same line end
			s.endLine()
			s.cr = end == '\r'
		} else {
			s.cr = false
		}
		b = b[i+1:]
		s.line = s.line[:0]
	}
}

// endLine processes a complete line. An empty line ends an event.
func (s *Stream) endLine() {
	line := s.line
	if !s.events {
		if line = bytes.TrimLeft(line, "\x1e \t"); isErrorObject(line) && !isRecord(line) {
			s.fail(line)
		}
		return
	}
	if len(line) == 0 {
		if s.marked {
			s.fail(s.text)
		}
		s.marked, s.text = false, s.text[:0]
		return
	}
	name, value, _ := bytes.Cut(bytes.TrimPrefix(line, []byte("\ufeff")), []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "event":
		s.marked = strings.EqualFold(string(bytes.TrimSpace(value)), "error")
	case "data":
		if isErrorObject(value) {
			s.fail(value)
		} else if len(s.text) == 0 {
			s.text = append(s.text, value...)
		}
	}
}

// isErrorObject reports whether a JSON text is an error in place of a response: it begins with {"error": ...}, {"type":"error"},
// {"type":"response.failed"} or {"object":"error"}, or its member error has a code or a message. A null is not an error. A
// JSON-RPC error is not one either, because it is the response to a call.
func isErrorObject(b []byte) bool {
	rest, ok := bytes.CutPrefix(space(b), []byte("{"))
	if !ok {
		return false
	}
	if rest, ok := member(rest, "type"); ok {
		return bytes.HasPrefix(rest, []byte(`"error"`)) || bytes.HasPrefix(rest, []byte(`"response.failed"`))
	}
	if rest, ok := member(rest, "errorDetail"); ok { // Docker
		return bytes.HasPrefix(rest, []byte(`{"`))
	}
	if rest, ok := member(rest, "object"); ok && bytes.HasPrefix(rest, []byte(`"error"`)) {
		return true
	}
	rest, ok = member(rest, "error")
	if !ok {
		return bytes.Contains(b, []byte(`"error"`)) && hasError(b)
	}
	if len(rest) == 0 || rest[0] != '{' && rest[0] != '"' || bytes.HasPrefix(rest, []byte(`""`)) || bytes.HasPrefix(rest, []byte(`{}`)) {
		return false
	}
	return !bytes.Contains(rest, []byte(`"jsonrpc"`))
}

// hasError reports whether an object has an error with a code or a message, as OpenRouter adds to a chunk.
func hasError(b []byte) bool {
	var chunk struct {
		Error struct {
			Code    any `json:"code"`
			Message any `json:"message"`
		} `json:"error"`
		JSONRPC any `json:"jsonrpc"`
	}
	return json.Unmarshal(b, &chunk) == nil && chunk.JSONRPC == nil && (chunk.Error.Code != nil || chunk.Error.Message != nil)
}

// isRecord reports whether a line is a record with an ID, such as a result of a batch. An error in it is data.
func isRecord(b []byte) bool {
	rest, ok := bytes.CutPrefix(space(b), []byte("{"))
	if !ok {
		return false
	}
	_, id := member(rest, "id")
	_, custom := member(rest, "custom_id")
	return id || custom
}

// member returns the text after the name of an object's first member.
func member(b []byte, name string) ([]byte, bool) {
	b, ok := bytes.CutPrefix(space(b), []byte(`"`+name+`"`))
	if !ok {
		return nil, false
	}
	b, ok = bytes.CutPrefix(space(b), []byte(":"))
	return space(b), ok
}

func space(b []byte) []byte { return bytes.TrimLeft(b, " \t") }

// fail records an error, with the details in body if that is JSON.
func (s *Stream) fail(body []byte) {
	s.failWith(HTTP(Response{Method: http.MethodGet, Status: http.StatusInternalServerError, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}))
}

// failWith records an error of the upstream. An error that is not the upstream's would have had another status.
func (s *Stream) failWith(o outcome.Outcome) {
	if o.Class != outcome.Throttled {
		o.Class = outcome.Failed
	}
	if o.Code == "" || o.Code == "500" {
		o.Code = ErrorEvent
	}
	o.Undone, o.Unsent = false, false
	s.failed = o
}

const (
	awsPrelude  = 12 // length, length of headers, checksum
	grpcPrelude = 5  // flags, length

	inPrelude = 0
	inBody    = 1
)

// frames reads frames that begin with their length.
func (s *Stream) frames(b []byte) {
	for len(b) > 0 && s.failed.Class == outcome.Unknown && !s.foreign {
		if s.skip > 0 && s.phase == inPrelude {
			n := min(s.skip, int64(len(b)))
			b, s.skip = b[n:], s.skip-n
			continue
		}
		n := min(s.need, len(b))
		s.head, b, s.need = append(s.head, b[:n]...), b[n:], s.need-n
		if s.need > 0 {
			return
		}
		if s.phase == inPrelude && s.prelude() {
			s.phase = inBody
			continue
		}
		if s.phase == inBody {
			s.body()
		}
		s.head, s.phase, s.need = s.head[:0], inPrelude, s.preludeLength()
	}
}

func (s *Stream) preludeLength() int {
	if s.frame == awsFrames {
		return awsPrelude
	}
	return grpcPrelude
}

// prelude parses the beginning of a frame, and reports whether more of the frame is read. Otherwise the rest is skipped.
func (s *Stream) prelude() (more bool) {
	if s.frame == awsFrames {
		total, headers := binary.BigEndian.Uint32(s.head), binary.BigEndian.Uint32(s.head[4:])
		unsure := s.sniffed && crc32.ChecksumIEEE(s.head[:8]) != binary.BigEndian.Uint32(s.head[8:])
		s.sniffed = false
		if unsure || total < awsPrelude+headers || headers > 64<<10 {
			s.ignore()
			return false
		}
		s.need, s.skip = int(headers), int64(total-awsPrelude-headers)
		return headers > 0
	}
	size := binary.BigEndian.Uint32(s.head[1:])
	last := s.frame == grpcWebFrames && s.head[0]&0x80 != 0 || s.frame == connectFrames && s.head[0]&0x03 == 0x02
	if !last {
		s.skip = int64(size)
		return false
	}
	s.ended = true
	s.need = int(min(size, mostLine))
	s.skip = int64(size) - int64(s.need)
	return s.need > 0
}

func (s *Stream) body() {
	switch s.frame {
	case awsFrames:
		fields := awsHeaders(s.head[awsPrelude:])
		if kind := fields[":message-type"]; kind == "exception" || kind == "error" {
			code := fields[":exception-type"] + fields[":error-code"]
			o := outcome.Outcome{Class: outcome.Failed, Code: code}
			if class, ok := AWSCode(strings.ToUpper(code[:min(1, len(code))]) + code[min(1, len(code)):]); ok {
				o.Class = class
			}
			s.failWith(o)
		}
	case grpcWebFrames:
		for line := range bytes.Lines(s.head[grpcPrelude:]) {
			name, value, _ := bytes.Cut(line, []byte(":"))
			if strings.EqualFold(string(name), "grpc-status") {
				if o, ok := GRPCStatus(string(bytes.TrimSpace(value))); ok {
					s.failed = o
				}
			}
		}
	case connectFrames:
		if body := s.head[grpcPrelude:]; isErrorObject(body) {
			s.fail(body)
		}
	}
}

// awsHeaders parses the text headers of an AWS event stream message.
func awsHeaders(b []byte) map[string]string {
	fields := make(map[string]string)
	for len(b) > 1 {
		n := int(b[0])
		if b = b[1:]; len(b) < n+1 {
			break
		}
		name, kind := string(b[:n]), b[n]
		b = b[n+1:]
		size := map[byte]int{0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}[kind]
		if kind == 6 || kind == 7 {
			if len(b) < 2 {
				break
			}
			size = int(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		if len(b) < size {
			break
		}
		if kind == 7 {
			fields[name] = string(b[:size])
		}
		b = b[size:]
	}
	return fields
}

// GRPCStatus returns the outcome of a gRPC status in a header or trailer. ok is false if the status is 0 or not a number.
func GRPCStatus(status string) (o outcome.Outcome, ok bool) {
	n, err := strconv.Atoi(status)
	if err != nil || n == 0 {
		return outcome.Outcome{}, false
	}
	o = outcome.Outcome{Class: outcome.Rejected, Code: "grpc-status " + status}
	switch n {
	case 1:
		o.Class = outcome.Canceled
	case 8:
		o.Class = outcome.Throttled
	case 2, 4, 13, 14, 15:
		o.Class = outcome.Failed
	}
	return o, true
}
