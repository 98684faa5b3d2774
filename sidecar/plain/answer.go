package plain

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"
)

// An answer is the http.ResponseWriter of a request. A response that fits into a buffer is written when the handler
// ends. A longer or flushed one is written piece by piece. Writes by the handler's goroutines after that are
// discarded. It sets the same header fields as net/http would: Date, Content-Length, Content-Type, Transfer-Encoding,
// Connection. Handlers cannot change Transfer-Encoding.
type answer struct {
	conn   *conn
	header http.Header
	method string // of the request

	status   int
	length   int64    // the body's length by the handler's header; -1 if it sets none
	wrote    int64    // bytes of the body
	guess    bool     // Content-Type must be guessed
	dated    bool     // the handler sets the date
	last     bool     // the connection ends with this response
	trailers []string // announced by the handler
	trails   bool     // it has trailers, or may have some
	sent     bool     // the head has been sent
	chunked  bool
	failed   error // error of a write
	*pieces        // data to be written; nil when the response has ended
}

// pieces contains the data to be written: the head, and the present part of the body.
type pieces struct{ head, body []byte }

const (
	mostHeld    = 16 << 10     // of a body before it is sent
	mostKept    = 3 * mostHeld // of a buffer that is reused
	mostGuessed = 512          // of a body whose Content-Type is guessed
)

var pool = sync.Pool{New: func() any { return &pieces{make([]byte, 0, 2<<10), make([]byte, 0, 4<<10)} }}

func newAnswer(c *conn, method string) *answer {
	return &answer{conn: c, header: make(http.Header), method: method, length: -1, pieces: pool.Get().(*pieces)}
}

var errOver = errors.New("sidecar/plain: the handler has ended")

// release returns its buffers to the pool.
func (a *answer) release() {
	b := a.pieces
	a.pieces = nil
	if cap(b.head) <= mostKept && cap(b.body) <= mostKept {
		b.head, b.body = b.head[:0], b.body[:0]
		pool.Put(b)
	}
}

// Header implements http.ResponseWriter.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements http.ResponseWriter. An informational response (1xx) is sent immediately.
func (a *answer) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("sidecar/plain: a handler answers with the status %d", status)) // like net/http
	case a.status != 0, a.pieces == nil:
	case status < http.StatusOK && status != http.StatusSwitchingProtocols:
		a.line(status)
		a.fields()
		a.head = append(a.head, "\r\n"...)
		a.flush()
	default:
		a.status = status
		a.line(status)
		a.reads()
		a.fields()
	}
}

// reads evaluates the header fields that concern the response itself.
func (a *answer) reads() {
	h := a.header
	if v := h["Content-Length"]; len(v) > 0 && a.allows() {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			a.length = n
		}
	}
	a.last = h["Connection"] != nil
	_, a.dated = h["Date"]        // a nil value suppresses the field
	_, typed := h["Content-Type"] // a nil value suppresses the field
	a.guess = !typed && h.Get("Content-Encoding") == ""
	for _, v := range h["Trailer"] {
		a.trails = true
		for name := range strings.SplitSeq(v, ",") {
			switch name = http.CanonicalHeaderKey(textproto.TrimString(name)); name {
			case "", "Transfer-Encoding", "Content-Length", "Trailer":
			default:
				a.trailers = append(a.trailers, name)
			}
		}
	}
}

// allows reports whether a response of this status has a body.
func (a *answer) allows() bool {
	return a.status >= http.StatusOK && a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// line writes the status line.
func (a *answer) line(status int) {
	b := append(a.head, "HTTP/1.1 "...)
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	a.head = append(append(b, text...), "\r\n"...)
}

// fields writes the handler's header fields, except those that frame the message.
func (a *answer) fields() {
	for name, values := range a.header {
		switch name {
		case "Content-Length", "Transfer-Encoding", "Connection":
			continue
		case "Content-Type":
			if a.status == http.StatusNotModified {
				continue
			}
		}
		if strings.HasPrefix(name, http.TrailerPrefix) {
			a.trails = true
			continue
		}
		if httpguts.ValidHeaderFieldName(name) {
			a.field(name, values)
		}
	}
}

// field writes a header field. Line breaks in a value are replaced.
func (a *answer) field(name string, values []string) {
	for _, v := range values {
		if strings.IndexByte(v, '\n') >= 0 || strings.IndexByte(v, '\r') >= 0 {
			v = inLine.Replace(v)
		}
		a.head = append(append(a.head, name...), ": "...)
		a.head = append(append(a.head, textproto.TrimString(v)...), "\r\n"...)
	}
}

var inLine = strings.NewReplacer("\n", " ", "\r", " ")

// Write implements http.ResponseWriter.
func (a *answer) Write(p []byte) (int, error) {
	if a.pieces == nil {
		return 0, errOver
	}
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	if len(p) == 0 {
		return 0, a.failed
	}
	if !a.allows() {
		return 0, http.ErrBodyNotAllowed
	}
	if a.wrote += int64(len(p)); a.length >= 0 && a.wrote > a.length {
		return 0, http.ErrContentLength
	}
	switch {
	case a.failed != nil:
	case a.method == http.MethodHead:
		a.body = append(a.body, p[:min(len(p), mostGuessed-len(a.body))]...)
	case len(a.body)+len(p) > mostHeld:
		a.send(p, false)
	default:
		a.body = append(a.body, p...)
	}
	return len(p), a.failed
}

// FlushError is called by http.ResponseController.
func (a *answer) FlushError() error {
	if a.pieces == nil {
		return errOver
	}
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.send(nil, false)
	return a.failed
}

// Flush implements http.Flusher.
func (a *answer) Flush() { _ = a.FlushError() }

// SetReadDeadline is called by http.ResponseController. The body has already been read.
func (a *answer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is called by http.ResponseController. The deadline may be up to 25% later, so that it need not be
// set for each response.
func (a *answer) SetWriteDeadline(at time.Time) error {
	a.conn.writeBy = at
	return nil
}

// EnableFullDuplex is called by http.ResponseController, which would otherwise create an error for each request.
func (a *answer) EnableFullDuplex() error { return http.ErrNotSupported }

// end ends the response after its handler, and reports whether the connection can be reused.
func (a *answer) end(last bool) bool {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.last = a.last || last
	short := a.length >= 0 && a.wrote != a.length && a.method != http.MethodHead // the client detects the missing bytes by the end of the connection
	a.send(nil, true)
	if a.chunked {
		a.head = append(a.head, "0\r\n"...)
		a.trail()
		a.head = append(a.head, "\r\n"...)
		a.flush()
	}
	return a.failed == nil && !a.last && !short
}

// trail writes the trailers.
func (a *answer) trail() {
	for name, values := range a.header {
		if name, ok := strings.CutPrefix(name, http.TrailerPrefix); ok && httpguts.ValidHeaderFieldName(name) {
			a.field(name, values)
		}
	}
	for _, name := range a.trailers {
		if httpguts.ValidHeaderFieldName(name) {
			a.field(name, a.header[name])
		}
	}
}

// send writes the head, if it has not been sent, the buffered part of the body, and p. whole means that the body ends
// there.
func (a *answer) send(p []byte, whole bool) {
	if !a.sent {
		a.sent = true
		a.frame(p, whole)
	}
	if n := len(a.body) + len(p); n > 0 && a.method != http.MethodHead { // HEAD has no body
		if a.chunked {
			a.head = append(strconv.AppendInt(a.head, int64(n), 16), "\r\n"...)
		}
		a.head = append(a.head, a.body...)
		a.adds(p)
		if a.chunked {
			a.head = append(a.head, "\r\n"...)
		}
	}
	a.body = a.body[:0]
	if !whole || !a.chunked { // otherwise the end of the chunked body is written with it
		a.flush()
	}
}

// adds appends to the buffer. A large piece is written directly, because a copy would be held for as long as the
// client reads.
func (a *answer) adds(p []byte) {
	if len(a.head) > 0 && len(p) <= mostHeld {
		a.head = append(a.head, p...)
		return
	}
	a.flush()
	a.write(p)
}

// frame ends the head with the fields that frame the body.
func (a *answer) frame(p []byte, whole bool) {
	now := time.Now()
	if !a.dated {
		a.head = append(a.head, a.conn.dateLine(now)...)
	}
	if a.allows() {
		if begin := a.body; a.guess && len(begin)+len(p) > 0 {
			if len(begin) == 0 {
				begin = p
			}
			a.field("Content-Type", []string{http.DetectContentType(begin)})
		}
		switch head := a.method == http.MethodHead; {
		case a.length >= 0:
			a.says(a.length)
		case whole && !a.trails && (!head || a.wrote > 0):
			a.says(a.wrote)
		case !head:
			a.chunked = true
			a.head = append(a.head, "Transfer-Encoding: chunked\r\n"...)
		}
	}
	if a.last = a.last || a.conn.l.stopping(); a.last {
		a.head = append(a.head, "Connection: close\r\n"...)
	}
	a.head = append(a.head, "\r\n"...)
}

// says writes the Content-Length.
func (a *answer) says(length int64) {
	a.head = append(strconv.AppendInt(append(a.head, "Content-Length: "...), length, 10), "\r\n"...)
}

// flush writes the buffered head.
func (a *answer) flush() {
	a.write(a.head)
	a.head = a.head[:0]
}

// write writes to the client. An error means that the client has disconnected.
func (a *answer) write(p []byte) {
	if a.failed != nil || len(p) == 0 {
		return
	}
	if a.failed = a.conn.write(p); a.failed != nil {
		a.conn.gone()
	}
}
