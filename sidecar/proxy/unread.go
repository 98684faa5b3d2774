package proxy

import (
	"io"
	"net/http"
	"strings"
	"time"
)

// mostDrained is as much of a body as the server itself reads to keep a connection, and
// lastRead is how long that is waited for once the answer is on its way.
const (
	mostDrained = 256 << 10
	lastRead    = 500 * time.Millisecond
)

// boundRest bounds how long the server waits for a body of which nothing was read, as its request was refused before: the server reads on
// before it gives the answer. Where reading has begun there is a bound. t is nil if the request came nowhere.
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

// finish reads what is left of a body once the answer is on its way, and ends the connection
// if that is too much or does not come: what remains of a body must never be read as a request.
// The server would do it, too, but not in this mode: it takes a read that has failed for the
// body's end, and it reads on only after it has stopped watching the connection: when it then
// comes to the end it watches again, and its next read panics ("invalid concurrent Body.Read
// call", Go 1.26).
func (t *trip) finish() {
	u, ok := t.body.(*upload)
	switch {
	case !t.duplex:
		if ok {
			u.end(0)
		}
		return
	case !ok: // it has no bound
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

// hangUp ends the answer and the connection, as the server does: it waits a little so that
// what the caller sends on does not destroy the answer.
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

// trailersOf are the fields of an answer that come after its body.
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

// chunked reports whether the server writes the answer in chunks.
func (t *trip) chunked() bool {
	l, ok := t.answer.(*link)
	return ok && l.status >= http.StatusOK && l.status != http.StatusNoContent && l.status != http.StatusNotModified &&
		t.came.Method != http.MethodHead && t.came.ProtoAtLeast(1, 1) && t.answer.Header().Get("Content-Length") == ""
}
