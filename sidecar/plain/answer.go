package plain

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// An answer is an http.ResponseWriter that keeps all until it is written at once. It answers one request after
// the other.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
	out    bytes.Buffer
	date   []byte // as it was written last
	second int64  // and when that was
}

// mostKept is the largest buffer that a connection keeps for its next answer.
const mostKept = 16 << 10

// begin makes it ready for the next request.
func (a *answer) begin() {
	if a.header == nil {
		a.header = make(http.Header)
	}
	clear(a.header)
	a.status = 0
	if a.body.Cap() > mostKept {
		a.body, a.out = bytes.Buffer{}, bytes.Buffer{}
	}
	a.body.Reset()
	a.out.Reset()
}

// Header is http.ResponseWriter's.
func (a *answer) Header() http.Header { return a.header }

// WriteHeader is http.ResponseWriter's. There are no answers before the answer (1xx).
func (a *answer) WriteHeader(status int) {
	if a.status == 0 && status >= http.StatusOK {
		a.status = status
	}
}

// Write is http.ResponseWriter's.
func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

// bytes are the answer as it is sent: with Date, Content-Length and Content-Type as net/http writes them. last says
// that the connection ends with it.
func (a *answer) bytes(now time.Time, last bool) []byte {
	a.WriteHeader(http.StatusOK)
	bare := a.status == http.StatusNoContent || a.status == http.StatusNotModified
	h, out := a.header, &a.out
	if _, set := h["Content-Type"]; !set && !bare && a.body.Len() > 0 {
		h.Set("Content-Type", http.DetectContentType(a.body.Bytes()))
	}
	delete(h, "Content-Length")
	delete(h, "Transfer-Encoding")
	delete(h, "Connection")
	out.WriteString("HTTP/1.1 ")
	b := append(strconv.AppendInt(out.AvailableBuffer(), int64(a.status), 10), ' ')
	out.Write(append(append(b, http.StatusText(a.status)...), "\r\n"...))
	if _, set := h["Date"]; !set {
		out.Write(a.dated(now))
	}
	if last {
		out.WriteString("Connection: close\r\n")
	}
	if !bare {
		out.WriteString("Content-Length: ")
		out.Write(append(strconv.AppendInt(out.AvailableBuffer(), int64(a.body.Len()), 10), "\r\n"...))
	}
	_ = h.Write(out) // to memory
	out.WriteString("\r\n")
	if !bare {
		out.Write(a.body.Bytes())
	}
	return out.Bytes()
}

// dated is the line that says when it is.
func (a *answer) dated(now time.Time) []byte {
	if s := now.Unix(); s != a.second {
		a.second = s
		a.date = append(now.UTC().AppendFormat(append(a.date[:0], "Date: "...), http.TimeFormat), "\r\n"...)
	}
	return a.date
}
