package classify

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// timeout is a net.Error like net/http's own timeouts.
type timeout struct{ text string }

func (e timeout) Error() string { return e.text }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

type known struct{ o outcome.Outcome }

func (known) Error() string              { return "known" }
func (k known) Outcome() outcome.Outcome { return k.o }

func op(name string, err error) error {
	if errno, ok := err.(syscall.Errno); ok {
		err = os.NewSyscallError("connect", errno)
	}
	return &url.Error{Op: "Get", URL: "http://x/", Err: &net.OpError{Op: name, Net: "tcp", Err: err}}
}

func TestErrors(t *testing.T) {
	tests := []struct {
		err  error
		want outcome.Outcome
	}{
		{nil, ok()},
		{op("dial", syscall.ECONNREFUSED), neverSent(fails("connection refused"))},
		{op("dial", syscall.EHOSTUNREACH), neverSent(fails("unreachable"))},
		{op("dial", syscall.ETIMEDOUT), neverSent(fails("timeout"))},
		{op("dial", timeout{"i/o timeout"}), neverSent(fails("timeout"))},
		{op("dial", errors.New("address x: missing port")), neverSent(fails("dial"))},
		{op("proxyconnect", errors.New("no")), neverSent(fails("dial"))},
		{op("dial", &net.DNSError{Err: "no such host", IsNotFound: true}), neverSent(fails("no such host"))},
		{op("dial", &net.DNSError{Err: "timeout", IsTimeout: true}), neverSent(fails("timeout"))},
		{&net.DNSError{Err: "server misbehaving"}, neverSent(fails("dns"))},
		{syscall.ECONNREFUSED, neverSent(fails("connection refused"))},
		{op("read", syscall.ECONNRESET), fails("connection reset")},
		{op("read", syscall.Errno(10054)), fails("connection reset")},
		{op("write", syscall.EPIPE), fails("broken pipe")},
		{op("read", os.ErrDeadlineExceeded), fails("timeout")},
		{op("read", net.ErrClosed), fails("closed")},
		{fmt.Errorf("reading: %w", io.ErrUnexpectedEOF), fails("eof")},
		{&url.Error{Op: "Post", URL: "x", Err: io.EOF}, fails("eof")},
		{fmt.Errorf("attempt: %w", context.DeadlineExceeded), fails("timeout")},
		{&url.Error{Op: "Get", Err: timeout{"net/http: timeout awaiting response headers"}}, fails("timeout")},
		{&url.Error{Op: "Get", Err: timeout{"net/http: TLS handshake timeout"}}, neverSent(fails("timeout"))},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, neverSent(fails("tls"))},
		{tls.RecordHeaderError{Msg: "oversized record received with length 20000"}, fails("tls")},
		{&tls.CertificateVerificationError{Err: errors.New("x")}, neverSent(fails("tls"))},
		{op("remote error", tls.AlertError(40)), neverSent(fails("tls"))},
		{op("local error", tls.AlertError(20)), fails("tls")}, // bad record MAC
		{errors.New("stream error: stream ID 5; REFUSED_STREAM"), undone(fails("refused stream"))},
		{errors.New("stream error: stream ID 5; INTERNAL_ERROR; received from peer"), fails("connection reset")},
		{errors.New("connection error: PROTOCOL_ERROR"), fails("connection reset")},
		{streamError{StreamID: 3, Code: codeRefusedStream}, undone(fails("refused stream"))},
		{errors.New("http2: Transport: cannot retry err [http2: Transport received Server's graceful shutdown GOAWAY] after Request.Body was written; define Request.GetBody to avoid this error"), undone(fails("goaway"))},
		{errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=""`), fails("goaway")},
		{errors.New("http2: client connection lost"), fails("connection lost")},
		{errors.New("http: server closed idle connection"), fails("closed")},
		{context.Canceled, outcome.Outcome{Class: outcome.Unknown, Code: "canceled"}},
		{errors.New("boom"), outcome.Outcome{Class: outcome.Unknown, Code: "error"}},
		{fmt.Errorf("deep: %w", known{throttle("mine")}), throttle("mine")},
		{known{after(ok(), -time.Second)}, after(ok(), 0)},
	}
	for _, tt := range tests {
		if got := Error(context.Background(), tt.err); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%v:\ngot  %+v\nwant %+v", tt.err, got, tt.want)
		}
	}
}

func TestCallerWhoLeftSaysNothingOfTheUpstream(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	want := outcome.Outcome{Class: outcome.Canceled, Code: "canceled"}
	for _, err := range []error{context.Canceled, op("dial", syscall.ECONNREFUSED), errors.New("boom"), context.DeadlineExceeded} {
		if got := Error(ctx, err); !reflect.DeepEqual(got, want) {
			t.Errorf("%v: got %+v, want %+v", err, got, want)
		}
	}
	if got := Error(ctx, known{throttle("mine")}); !reflect.DeepEqual(got, throttle("mine")) {
		t.Errorf("an answer that arrived: got %+v", got)
	}
	if got := Error(ctx, nil); got.Class != outcome.OK {
		t.Errorf("no error: got %+v", got)
	}
}

// The package relies on error texts that net/http and crypto/tls do not guarantee. This test uses their real errors.

func TestRealCertificateIsRefusedBeforeSending(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	_, err := http.Get(srv.URL)
	if got := Error(t.Context(), err); got.Code != "tls" || !got.Undone {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestRealPlainServerIsNoTLS(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	c := &tls.Config{InsecureSkipVerify: true}
	_, err := tls.Dial("tcp", srv.Listener.Addr().String(), c)
	if got := Error(t.Context(), err); got.Code != "tls" || !got.Undone {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestRealHandshakeAlert(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{MinVersion: tls.VersionTLS13}
	srv.StartTLS()
	defer srv.Close()
	c := &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS12}
	_, err := tls.Dial("tcp", srv.Listener.Addr().String(), c)
	if got := Error(t.Context(), err); got.Code != "tls" || !got.Undone {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestRealRefusedConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	_, err = http.Get("http://" + l.Addr().String())
	if got := Error(t.Context(), err); got.Code != "connection refused" || !got.Undone {
		t.Errorf("%v: got %+v", err, got)
	}
}

func TestRealHTTP2Reset(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		panic(http.ErrAbortHandler)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	_, err := srv.Client().Get(srv.URL)
	if got := Error(t.Context(), err); got.Code != "connection reset" || got.Undone {
		t.Errorf("%v: got %+v", err, got)
	}
	if code, ok := streamCode(err); !ok || code == codeRefusedStream {
		t.Errorf("%v: the stream error's code is %v, %v", err, code, ok)
	}
}

// neverSent returns the outcome for a request that did not reach the upstream.
func neverSent(o outcome.Outcome) outcome.Outcome {
	o.Undone, o.Unsent = true, true
	return o
}
