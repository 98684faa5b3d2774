package proxy

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// mostDrained is how many bytes of a body the server reads to keep a connection. lastRead is how long weir waits for
// them after the response.
const (
	mostDrained = 256 << 10
	lastRead    = 500 * time.Millisecond
)

// boundRest limits how long the server waits for a body if weir refused the request without reading it. The server
// reads on before it sends the response. If reading has begun, another limit applies. t is nil if the request was not
// routed.
func (t *trip) boundRest(w http.ResponseWriter, r *http.Request) {
	if _, known := r.Body.(inMemory); known || r.ProtoMajor != 1 || r.ContentLength == 0 {
		return
	}
	if t != nil {
		sent, _ := t.body.(*upload)
		if t.duplex || sent.read() || t.paces.read() || t.unheard {
			return
		}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(hearing))
}

// finish reads the rest of a body after the response. It ends the connection if that is too much or does not arrive:
// the rest must never be read as a request.
//
// The server would do the same, but not in full-duplex mode. There it treats a failed read as the body's end. It also
// resumes watching the connection when its late read reaches the end, and its next read panics ("invalid concurrent
// Body.Read call", Go 1.26).
func (t *trip) finish() {
	u, ok := t.body.(*upload)
	switch {
	case !t.duplex:
		if ok {
			u.end(0)
		}
		return
	case !ok: // it has no limit
		u = newUpload(io.NopCloser(t.body), nil)
	}
	_ = http.NewResponseController(t.answer).Flush()
	most := int64(mostDrained)
	if t.came.ContentLength > most {
		most = 0
	}
	if !u.end(lastRead) || !u.drain(most+1, lastRead) {
		t.hangUp()
	}
}

// hangUp ends the response and the connection. Like the server, it waits a little, because data that the caller still
// sends could destroy the response.
func (t *trip) hangUp() {
	conn, _, err := http.NewResponseController(t.answer).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(lastRead))
	if t.chunked() {
		_, _ = io.WriteString(conn, "0\r\n")
		_ = trailersOf(t.answer.Header()).Write(conn)
		_, _ = io.WriteString(conn, "\r\n")
	}
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = c.CloseWrite()
		_, _ = io.CopyN(io.Discard, conn, mostDrained)
	}
}

// trailersOf returns the fields of a response that follow its body.
func trailersOf(h http.Header) http.Header {
	out := make(http.Header)
	for _, names := range h["Trailer"] {
		for name := range strings.SplitSeq(names, ",") {
			if name = http.CanonicalHeaderKey(strings.TrimSpace(name)); h[name] != nil {
				out[name] = h[name]
			}
		}
	}
	for key, values := range h {
		if name, ok := strings.CutPrefix(key, http.TrailerPrefix); ok {
			out[http.CanonicalHeaderKey(name)] = values
		}
	}
	return out
}

// chunked reports whether the server writes the response in chunks.
func (t *trip) chunked() bool {
	l, ok := t.answer.(*link)
	return ok && l.status >= http.StatusOK && l.status != http.StatusNoContent && l.status != http.StatusNotModified &&
		t.came.Method != http.MethodHead && t.came.ProtoAtLeast(1, 1) && t.answer.Header().Get("Content-Length") == ""
}
