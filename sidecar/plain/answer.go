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

// An answer is the http.ResponseWriter of a request. What fits into a buffer is written at once when the handler ends;
// what is longer, or flushed, when it comes. What a handler's goroutines write after that goes nowhere. It says of
// itself what net/http says of the same answer: Date, Content-Length, Content-Type, Transfer-Encoding, Connection.
// Handlers have no say in Transfer-Encoding.
type answer struct {
	conn   *conn
	header http.Header
	method string // of the request

	status   int
	length   int64    // what the handler says that the body has; -1 for nothing
	wrote    int64    // of the body
	guess    bool     // Content-Type is to be guessed
	dated    bool     // the handler says when it is
	last     bool     // the connection ends with this answer
	trailers []string // that the handler named
	trails   bool     // it has, or may have some
	sent     bool     // the head has been
	chunked  bool
	failed   error // of a write
	*pieces        // what is to be written; nil when it is over
}

// pieces hold what is to be written: the head, and of the body what has come.
type pieces struct{ head, body []byte }

const (
	mostHeld    = 16 << 10     // of a body before it is sent
	mostKept    = 3 * mostHeld // of a buffer that is used again
	mostGuessed = 512          // of a body whose Content-Type is guessed
)

var pool = sync.Pool{New: func() any { return &pieces{make([]byte, 0, 2<<10), make([]byte, 0, 4<<10)} }}

func newAnswer(c *conn, method string) *answer {
	return &answer{conn: c, header: make(http.Header), method: method, length: -1, pieces: pool.Get().(*pieces)}
}

var errOver = errors.New("sidecar/plain: the handler has ended")

// release gives its buffers back.
func (a *answer) release() {
	b := a.pieces
	a.pieces = nil
	if cap(b.head) <= mostKept && cap(b.body) <= mostKept {
		b.head, b.body = b.head[:0], b.body[:0]
		pool.Put(b)
	}
}

// Header is http.ResponseWriter's.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter's. An answer before the answer (1xx) is sent at once.
func (a *answer) WriteHeader(status int) {
	switch {
	case status < 100 || status > 999:
		panic(fmt.Sprintf("sidecar/plain: a handler answers with the status %d", status)) // as net/http has it
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

// reads takes note of what the fields say about the answer itself.
func (a *answer) reads() {
	h := a.header
	if v := h["Content-Length"]; len(v) > 0 && a.allows() {
		if n, err := strconv.ParseInt(v[0], 10, 64); err == nil && n >= 0 {
			a.length = n
		}
	}
	a.last = h["Connection"] != nil
	_, a.dated = h["Date"]        // perhaps at no time
	_, typed := h["Content-Type"] // perhaps as none
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

// allows reports whether an answer of this status has a body.
func (a *answer) allows() bool {
	return a.status >= http.StatusOK && a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// line begins a head.
func (a *answer) line(status int) {
	b := append(a.head, "HTTP/1.1 "...)
	b = append(strconv.AppendInt(b, int64(status), 10), ' ')
	text := http.StatusText(status)
	if text == "" {
		text = "status code " + strconv.Itoa(status)
	}
	a.head = append(append(b, text...), "\r\n"...)
}

// fields adds those of the handler, but for those that say where the message ends.
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

// field adds one. A value can end no line.
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

// Write is http.ResponseWriter's.
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

// FlushError is http.ResponseController's.
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

// Flush is http.Flusher's.
func (a *answer) Flush() { _ = a.FlushError() }

// SetReadDeadline is http.ResponseController's. The body has come already.
func (a *answer) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline is http.ResponseController's. It is about that: up to a quarter later, so that it need not be set
// anew for each answer.
func (a *answer) SetWriteDeadline(at time.Time) error {
	a.conn.writeBy = at
	return nil
}

// EnableFullDuplex is http.ResponseController's, which would make an error of its own for each request.
func (a *answer) EnableFullDuplex() error { return http.ErrNotSupported }

// end ends the answer with its handler, and reports whether the connection can go on.
func (a *answer) end(last bool) bool {
	if a.status == 0 {
		a.WriteHeader(http.StatusOK)
	}
	a.last = a.last || last
	short := a.length >= 0 && a.wrote != a.length && a.method != http.MethodHead // its reader sees the end of the connection where more was promised
	a.send(nil, true)
	if a.chunked {
		a.head = append(a.head, "0\r\n"...)
		a.trail()
		a.head = append(a.head, "\r\n"...)
		a.flush()
	}
	return a.failed == nil && !a.last && !short
}

// trail adds the trailers.
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

// send sends what there is: the head, if it has not been sent, and of the body what has come and p. whole says that
// nothing follows.
func (a *answer) send(p []byte, whole bool) {
	if !a.sent {
		a.sent = true
		a.frame(p, whole)
	}
	if n := len(a.body) + len(p); n > 0 && a.method != http.MethodHead { // which has no body
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
	if !whole || !a.chunked { // or what ends it goes with it
		a.flush()
	}
}

// adds adds to what is to be written. What is large is written at once: a copy of it would be held for as long as its caller reads it.
func (a *answer) adds(p []byte) {
	if len(a.head) > 0 && len(p) <= mostHeld {
		a.head = append(a.head, p...)
		return
	}
	a.flush()
	a.write(p)
}

// frame ends the head with what says where the body ends.
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

// says adds how long the body is.
func (a *answer) says(length int64) {
	a.head = append(strconv.AppendInt(append(a.head, "Content-Length: "...), length, 10), "\r\n"...)
}

// flush writes what is in head.
func (a *answer) flush() {
	a.write(a.head)
	a.head = a.head[:0]
}

// write writes to the caller, who has left if that fails.
func (a *answer) write(p []byte) {
	if a.failed != nil || len(p) == 0 {
		return
	}
	if a.failed = a.conn.write(p); a.failed != nil {
		a.conn.gone()
	}
}
