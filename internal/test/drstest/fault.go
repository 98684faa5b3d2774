package drstest

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// A Fault is the fault of one request. A fault Before has no effect on the server. A fault After keeps the effect of the
// request, but the client does not see the response.
type Fault int

const (
	None         Fault = iota
	LostAfter          // the connection is closed
	LostBefore         //
	FailAfter          // 500 InternalServerException
	FailBefore         //
	Busy               // 429 ThrottlingException, without effect
	ResetAfter         // the connection is reset, if it is TCP
	ResetBefore        //
	HangAfter          // no response until the client disconnects
	HangBefore         //
	CutAfter           // the response is truncated
	EmptyAfter         // the response is an empty object
	GatewayAfter       // 502 from a proxy, without content of DRS

	// Faults is the number of faults.
	Faults
)

// play responds with the fault.
func (f Fault) play(w http.ResponseWriter, r *http.Request, answer func() reply) {
	switch f {
	case LostBefore, ResetBefore, HangBefore:
	case FailBefore:
		internal.write(w)
		return
	case Busy:
		throttle.write(w)
		return
	default:
		f.after(w, r, answer())
		return
	}
	f.leave(w, r)
}

// after damages a response.
func (f Fault) after(w http.ResponseWriter, r *http.Request, a reply) {
	switch f {
	case LostAfter, ResetAfter, HangAfter:
		f.leave(w, r)
	case FailAfter:
		internal.write(w)
	case CutAfter:
		body := a.head(w)
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(a.status)
		_, _ = w.Write(body[:len(body)/2])
		panic(http.ErrAbortHandler)
	case EmptyAfter:
		a.body = object{}
		a.write(w)
	case GatewayAfter:
		w.WriteHeader(http.StatusBadGateway)
	default:
		a.write(w)
	}
}

// leave ends without a response.
func (f Fault) leave(w http.ResponseWriter, r *http.Request) {
	if f == HangAfter || f == HangBefore {
		<-r.Context().Done()
	}
	if h, ok := w.(http.Hijacker); ok && (f == ResetAfter || f == ResetBefore) {
		if conn, _, err := h.Hijack(); err == nil {
			reset(conn)
			return
		}
	}
	panic(http.ErrAbortHandler)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// wait waits, at most as long as the client does.
func wait(r *http.Request, d time.Duration) {
	if d <= 0 {
		return
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-r.Context().Done():
	}
}
