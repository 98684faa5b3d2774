package drstest

import (
	"net"
	"net/http"
	"strconv"
	"time"
)

// A Fault is what goes wrong with one request. What happens Before leaves no effect; what
// happens After leaves that of the request, of which the client does not hear.
type Fault int

const (
	None         Fault = iota
	LostAfter          // the connection is closed
	LostBefore         //
	FailAfter          // 500 InternalServerException
	FailBefore         //
	Busy               // 429 ThrottlingException, without effect
	ResetAfter         // the connection is reset, where it is one of TCP
	ResetBefore        //
	HangAfter          // no answer until the client leaves
	HangBefore         //
	CutAfter           // the answer breaks off in the middle
	EmptyAfter         // the answer is an empty object
	GatewayAfter       // 502 from something between, without a word of DRS's

	// Faults is how many there are: those below it are all.
	Faults
)

// play answers with the fault.
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

// after spoils an answer.
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

// leave ends without an answer.
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

// wait waits as long as the client does.
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
