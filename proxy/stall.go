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
)

// A link is the connection to a caller while a request is served: bodies that stand still on
// it are given up after the policy's idle time. The time in which the upstream is waited for
// does not count.
type link struct {
	http.ResponseWriter
	control *http.ResponseController
	idle    time.Duration // 0 or less if there is no bound
}

// link is the link of a request, nil if it has none: the protocol is to be changed, or it is
// gRPC's, which has signs of life of its own.
func (t *target) link(w http.ResponseWriter, r *http.Request) *link {
	if t.base.Timeouts.Idle <= 0 && t.base.Timeouts.Body <= 0 || r.Header.Get("Upgrade") != "" || strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
		return nil
	}
	l := &link{ResponseWriter: w, control: http.NewResponseController(w), idle: t.base.Timeouts.Idle}
	if r.ProtoMajor == 1 { // what was set for the request before has passed
		_ = l.control.SetWriteDeadline(time.Time{})
	}
	return l
}

// request is a request whose body is waited for no longer than that, and in all no longer
// than body; 0 or less is no bound.
func (l *link) request(r *http.Request, body time.Duration) *http.Request {
	if r.Body == nil || r.Body == http.NoBody {
		return r
	}
	u := &upload{ReadCloser: r.Body, link: l, spare: spared}
	if body > 0 {
		u.until = time.Now().Add(body)
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
	l.writes()
	l.ResponseWriter.WriteHeader(status)
}

func (l *link) Write(p []byte) (int, error) {
	l.writes()
	return l.ResponseWriter.Write(p)
}

// FlushError is http.ResponseController's.
func (l *link) FlushError() error {
	l.writes()
	return l.control.Flush()
}

func (l *link) writes() {
	if l.idle > 0 {
		_ = l.control.SetWriteDeadline(time.Now().Add(l.idle))
	}
}

// An upload is the body of a request whose caller is waited for no longer than the policy
// says.
type upload struct {
	io.ReadCloser
	link    *link
	until   time.Time     // when all of it must be there; zero if at any time
	spare   time.Duration // after that
	reading atomic.Bool
	read    sync.Mutex // held while reading
}

// spared is what the transport has, which bounds the body, too, to end the attempt and answer:
// when a read from the connection fails the server takes the caller for gone.
const spared = 5 * time.Second

// over lets nobody wait for the body any more, and reports whether somebody did: then there
// is nothing to be had of the connection.
func (u *upload) over() bool {
	if !u.reading.Load() {
		return false
	}
	_ = u.link.control.SetReadDeadline(longAgo)
	u.read.Lock() // the server takes the deadline back if it finds a read under way
	defer u.read.Unlock()
	_ = u.link.control.SetReadDeadline(longAgo)
	return true
}

var longAgo = time.Unix(1, 0)

// Close is io.Closer's. The server's own body would wait for a read that is under way, and the
// server closes it anyhow.
func (u *upload) Close() error {
	if u.reading.Load() {
		return nil
	}
	return u.ReadCloser.Close()
}

// Read is io.Reader's.
func (u *upload) Read(p []byte) (int, error) {
	u.read.Lock()
	defer u.read.Unlock()
	u.reading.Store(true)
	defer u.reading.Store(false)
	_ = u.link.control.SetReadDeadline(u.deadline())
	n, err := u.ReadCloser.Read(p)
	switch {
	case err == nil:
	case !errors.Is(err, os.ErrDeadlineExceeded): // from now on the server watches whether the caller leaves
		_ = u.link.control.SetReadDeadline(time.Time{})
	case !u.until.IsZero() && !time.Now().Before(u.until):
		err = weir.ErrBodyTimeout
	default:
		err = weir.ErrRequestStalled
	}
	return n, err
}

// deadline is that of the next read; zero if there is none.
func (u *upload) deadline() (at time.Time) {
	if u.link.idle > 0 {
		at = time.Now().Add(u.link.idle)
	}
	if !u.until.IsZero() && (at.IsZero() || u.until.Before(at)) {
		at = u.until
	}
	if !at.IsZero() {
		at = at.Add(u.spare)
	}
	return at
}
