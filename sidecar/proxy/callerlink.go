package proxy

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/pace"
)

// A link is the connection to a caller while a request is served. A body that makes no progress for the policy's idle
// time is aborted. Time spent waiting for the upstream does not count.
type link struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration // how long the caller may read nothing; 0 or less means no limit
	status  int           // status of the response, 0 before it is sent
	http2   bool          // the upstream's response arrives over HTTP/2
	window  window        // for its writes
}

// link returns the link of a request.
func (t *target) link(w http.ResponseWriter, r *http.Request) *link {
	l := &link{ResponseWriter: w, control: http.NewResponseController(w), idle: t.base.Timeouts.Idle}
	l.window.control = l.control
	if r.ProtoMajor == 1 { // clear the deadline of the previous request
		_ = l.control.SetWriteDeadline(time.Time{})
	}
	return l
}

// speaksGRPC reports whether a request is a gRPC call, which may be silent in one direction while messages flow in the
// other. A request cannot escape the bounds by its headers alone: gRPC needs HTTP/2 and an upstream without another
// dialect.
func (t *target) speaksGRPC(r *http.Request) bool {
	return (t.Dialect == nil || t.GRPC) && r.ProtoMajor >= 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// request returns the request with a body that obeys the timeouts. A stream may be silent and slow, and a body in
// memory needs no timeout.
func (l *link) request(r *http.Request, t weir.Timeouts, stream bool) *http.Request {
	if _, known := r.Body.(inMemory); known || r.Body == nil || r.Body == http.NoBody {
		return r
	}
	u := newUpload(r.Body, l)
	if !stream {
		u.idle, u.pace = t.UploadIdle, pace.New(t.UploadRate, t.UploadOver, t.UploadIdle)
	}
	if t.Body > 0 {
		u.until = time.Now().Add(t.Body)
	}
	out := new(http.Request)
	*out = *r
	out.Body = u
	return out
}

// Unwrap implements the interface of http.ResponseController.
func (l *link) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (l *link) WriteHeader(status int) {
	defer l.writes()()
	if status >= http.StatusOK && l.status == 0 {
		l.status = status
	}
	l.ResponseWriter.WriteHeader(status)
}

func (l *link) Write(p []byte) (int, error) {
	defer l.writes()()
	return l.ResponseWriter.Write(p)
}

// FlushError implements the interface of http.ResponseController.
func (l *link) FlushError() error {
	defer l.writes()()
	return l.control.Flush()
}

// writes begins a write. The returned function ends it.
func (l *link) writes() func() {
	if l.idle > 0 {
		_ = l.control.SetWriteDeadline(time.Now().Add(l.idle))
	}
	if !l.http2 {
		return func() {}
	}
	return unread.begin(&l.window)
}

// An upload is a request body whose reads obey the policy's timeouts.
type upload struct {
	io.ReadCloser
	link    *link         // nil if there is no limit
	idle    time.Duration // longest silence; 0 or less if there is no limit
	pace    pace.Pace     // guarded by turn
	until   time.Time     // deadline of the complete body; zero if there is none
	spare   time.Duration // added to each deadline
	turn    chan struct{} // holds a value during a read or close; taken before setting
	whole   bool          // the body was read to its end; guarded by turn
	began   atomic.Bool   // a read has begun
	setting sync.Mutex    // guards over and the connection's deadline
	over    bool          // the response has been sent: no more of the body is forwarded
}

func newUpload(body io.ReadCloser, l *link) *upload {
	return &upload{ReadCloser: body, link: l, spare: spared, turn: make(chan struct{}, 1)}
}

// spared is added to each read deadline. The transport bounds the body as well, and this gives it time to end the
// attempt and respond: after a failed read from the connection, the server assumes that the caller has disconnected.
const spared = 5 * time.Second

// end stops forwarding the body and waits at most wait for a read in progress. It reports whether that read completed.
// If not, the connection can no longer be read.
func (u *upload) end(wait time.Duration) bool {
	u.setting.Lock()
	u.over = true
	u.setting.Unlock()
	select {
	case u.turn <- struct{}{}:
		<-u.turn
		return true
	default:
	}
	cut := time.AfterFunc(wait, func() { u.set(longAgo) })
	u.turn <- struct{}{}
	defer func() { <-u.turn }()
	return cut.Stop()
}

// drain reads and discards at most most bytes of an ended body. It reports whether that was the rest of the body.
func (u *upload) drain(most int64, wait time.Duration) bool {
	u.turn <- struct{}{}
	defer func() { <-u.turn }()
	if u.whole {
		return true
	}
	u.set(time.Now().Add(wait))
	_, err := io.CopyN(io.Discard, u.ReadCloser, most)
	if u.whole = err == io.EOF; u.whole {
		u.set(time.Time{}) // from now on, the server watches for a disconnect
	}
	return u.whole
}

var longAgo = time.Unix(1, 0)

// set sets the read deadline of the connection, if bodies have one.
func (u *upload) set(at time.Time) {
	if u.link == nil {
		return
	}
	u.setting.Lock()
	defer u.setting.Unlock()
	_ = u.link.control.SetReadDeadline(at)
}

// goOn sets the read deadline of the connection, and reports whether the body is still forwarded.
func (u *upload) goOn(at time.Time) bool {
	u.setting.Lock()
	defer u.setting.Unlock()
	if !u.over {
		_ = u.link.control.SetReadDeadline(at)
	}
	return !u.over
}

// Close implements io.Closer. It does not wait for a read in progress, as the server's body would: the server closes it
// later anyway.
func (u *upload) Close() error {
	select {
	case u.turn <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-u.turn }()
	err := u.ReadCloser.Close() // also reads the rest
	u.whole = u.whole || err == nil
	return err
}

// read reports whether a read has begun. A nil upload has none.
func (u *upload) read() bool { return u != nil && u.began.Load() }

// Read implements io.Reader.
func (u *upload) Read(p []byte) (int, error) {
	u.turn <- struct{}{}
	defer func() { <-u.turn }()
	u.began.Store(true)
	begin := time.Now()
	if !u.goOn(u.deadline(begin)) {
		return 0, http.ErrBodyReadAfterClose
	}
	n, err := u.ReadCloser.Read(p)
	took := time.Since(begin)
	u.pace.Came(n, took)
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrDeadlineExceeded): // from now on, the server watches for a disconnect
		u.whole = err == io.EOF
		u.goOn(time.Time{})
	case !u.until.IsZero() && !time.Now().Before(u.until):
		err = httpx.ErrBodyTimeout
	case u.idle <= 0 || took < u.idle:
		err = httpx.ErrRequestSlow
	default:
		err = httpx.ErrRequestStalled
	}
	return n, err
}

// deadline returns the deadline of a read that begins now, or the zero time if there is none.
func (u *upload) deadline(now time.Time) (at time.Time) {
	sooner := func(t time.Time) {
		if at.IsZero() || t.Before(at) {
			at = t
		}
	}
	if u.idle > 0 {
		sooner(now.Add(u.idle))
	}
	if u.pace.Bounds() {
		sooner(now.Add(u.pace.Left()))
	}
	if !u.until.IsZero() {
		sooner(u.until)
	}
	if !at.IsZero() {
		at = at.Add(u.spare)
	}
	return at
}
