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

// A link is the connection to a caller while a request is served: bodies that stand still on
// it are given up after the policy's idle time. The time in which the upstream is waited for
// does not count.
type link struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration // longest that the caller may read nothing; 0 or less if there is no bound
	status  int           // of the answer, 0 while there is none
	http2   bool          // the upstream's response comes over HTTP/2
	window  window        // of its writes
}

// link is the link of a request.
func (t *target) link(w http.ResponseWriter, r *http.Request) *link {
	l := &link{ResponseWriter: w, control: http.NewResponseController(w), idle: t.base.Timeouts.Idle}
	l.window.control = l.control
	if r.ProtoMajor == 1 { // what was set for the request before has passed
		_ = l.control.SetWriteDeadline(time.Time{})
	}
	return l
}

// speaksGRPC reports whether a request is a call of gRPC, which may be silent in one direction while messages go in the
// other. What a request says of itself frees it of no bound: gRPC needs HTTP/2, and no other dialect has it.
func (t *target) speaksGRPC(r *http.Request) bool {
	return (t.Dialect == nil || t.GRPC) && r.ProtoMajor >= 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc")
}

// request is a request whose body is waited for no longer than the timeouts say. One that is a stream may
// be silent, and slow; one that is in memory is not waited for.
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

// Unwrap is http.ResponseController's.
func (l *link) Unwrap() http.ResponseWriter { return l.ResponseWriter }

// WriteHeader and Write are http.ResponseWriter's.
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

// FlushError is http.ResponseController's.
func (l *link) FlushError() error {
	defer l.writes()()
	return l.control.Flush()
}

// writes begins a write. The function ends it.
func (l *link) writes() func() {
	if l.idle > 0 {
		_ = l.control.SetWriteDeadline(time.Now().Add(l.idle))
	}
	if !l.http2 {
		return func() {}
	}
	return unread.begin(&l.window)
}

// An upload is the body of a request whose caller is waited for no longer than the policy
// says.
type upload struct {
	io.ReadCloser
	link    *link         // nil if there is no bound
	idle    time.Duration // longest silence; 0 or less if there is no bound
	pace    pace.Pace     // in turn
	until   time.Time     // when all of it must be there; zero if at any time
	spare   time.Duration // after that
	turn    chan struct{} // holds a value while somebody reads or closes; taken before setting
	whole   bool          // it has come to its end; in turn
	began   atomic.Bool   // somebody has read of it
	setting sync.Mutex    // of over and the connection's deadline
	over    bool          // the answer has been given: nothing of the body is sent on
}

func newUpload(body io.ReadCloser, l *link) *upload {
	return &upload{ReadCloser: body, link: l, spare: spared, turn: make(chan struct{}, 1)}
}

// spared is what the transport has, which bounds the body, too, to end the attempt and answer:
// when a read from the connection fails the server takes the caller for gone.
const spared = 5 * time.Second

// end ends the sending on of the body and waits for a read that is under way, but no longer than
// that. It reports whether the read came to its end: if not, there is nothing more to be had of
// the connection.
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

// drain reads so much of a body that has ended, throws it away, and reports whether that was
// all of it.
func (u *upload) drain(most int64, wait time.Duration) bool {
	u.turn <- struct{}{}
	defer func() { <-u.turn }()
	if u.whole {
		return true
	}
	u.set(time.Now().Add(wait))
	_, err := io.CopyN(io.Discard, u.ReadCloser, most)
	if u.whole = err == io.EOF; u.whole {
		u.set(time.Time{}) // the server watches whether the caller leaves
	}
	return u.whole
}

var longAgo = time.Unix(1, 0)

// set sets the deadline of reads from the connection, if bodies have one.
func (u *upload) set(at time.Time) {
	if u.link == nil {
		return
	}
	u.setting.Lock()
	defer u.setting.Unlock()
	_ = u.link.control.SetReadDeadline(at)
}

// goOn sets the deadline of reads from the connection, and reports whether the body is still
// to be sent on.
func (u *upload) goOn(at time.Time) bool {
	u.setting.Lock()
	defer u.setting.Unlock()
	if !u.over {
		_ = u.link.control.SetReadDeadline(at)
	}
	return !u.over
}

// Close is io.Closer's. The server's own body would wait for a read that is under way, and the
// server closes it anyhow.
func (u *upload) Close() error {
	select {
	case u.turn <- struct{}{}:
	default:
		return nil
	}
	defer func() { <-u.turn }()
	err := u.ReadCloser.Close() // reads the rest of it
	u.whole = u.whole || err == nil
	return err
}

// read reports whether somebody has read of it; nil is no body, of which nobody has.
func (u *upload) read() bool { return u != nil && u.began.Load() }

// Read is io.Reader's.
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
	case !errors.Is(err, os.ErrDeadlineExceeded): // from now on the server watches whether the caller leaves
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

// deadline is that of a read that begins now; zero if there is none.
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
