package grpcdialect

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"

	"github.com/seed1158cd35/weir/grpcx/grpcclass"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
)

// A written timeout is never longer than the actual one, and as precise as eight digits allow.
func TestTimeouts(t *testing.T) {
	for s, want := range map[string]time.Duration{"1n": 1, "15u": 15 * time.Microsecond, "20m": 20 * time.Millisecond, "3S": 3 * time.Second, "2M": 2 * time.Minute, "99999999H": 1<<63 - 1, "0S": 0} {
		if d, ok := readTimeout(s); !ok || d != want {
			t.Errorf("%s is read as %v, %v", s, d, ok)
		}
	}
	for _, s := range []string{"", "1", "S", "-1S", "1.5S", "123456789S", "1s", " 1S"} {
		if d, ok := readTimeout(s); ok {
			t.Errorf("%q is read as %v", s, d)
		}
	}
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		d := time.Duration(r.Int64N(1 << r.IntN(62)))
		s := writeTimeout(d)
		got, ok := readTimeout(s)
		if !ok || got > max(d, 1) || got < d-d/100_000-1 {
			t.Fatalf("seed %d: %v is written as %s", seed, d, s)
		}
	}
	if s := writeTimeout(-time.Second); s != "1n" {
		t.Errorf("no time is written as %s", s)
	}
}

// request returns a gRPC request with a body.
func request(body []byte, fields ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/s.S/M", bytes.NewReader(body))
	r.Header.Set("Content-Type", "application/grpc")
	for i := 0; i < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	return r
}

// message returns an encoded message of n bytes.
func message(n int) []byte {
	return append([]byte{0, byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, make([]byte, n)...)
}

// A call with more than one sent message is not repeated, however the messages are split into reads.
func TestStreamsOfTheCallerAreNotRepeated(t *testing.T) {
	throttled := &http.Response{StatusCode: 200, Header: http.Header{statusField: {"8"}}, Body: http.NoBody}
	for _, c := range []struct {
		name   string
		body   []byte
		stream bool
	}{
		{"one", message(1000), false},
		{"one of nothing", message(0), false},
		{"two", append(message(1000), message(3)...), true},
		{"two of nothing", append(message(0), message(0)...), true},
		{"part of one", message(1000)[:20], false},
	} {
		for _, piece := range []int{1, 3, 5, 6, 4096} {
			h, _ := Dialect{}.Hear(request(c.body), "/s.S/M")
			x := h.(*exchange)
			r := request(c.body)
			if err := x.Attempt(r); err != nil {
				t.Fatal(err)
			}
			_, _ = io.CopyBuffer(io.Discard, struct{ io.Reader }{r.Body}, make([]byte, piece))
			o := x.Answered(throttled, outcome.Outcome{})
			if again := o.Undone && o.Hint.Advice != outcome.NotAgain; again == c.stream {
				t.Errorf("%s, %d bytes at a time: %+v", c.name, piece, o)
			}
			broke := errors.New("http2: client connection lost")
			if _, judged := errors.AsType[outcome.Classifier](x.Failed(t.Context(), broke)); judged != c.stream {
				t.Errorf("%s, %d bytes at a time: judged by its error: %v", c.name, piece, judged)
			}
		}
	}
}

// failing is a body that breaks off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
func (failing) Close() error               { return nil }

// A response that breaks off ends with the status of its error, and has the matching outcome.
func TestAnswersThatBreakOff(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-1))
	defer cancel()
	left, leave := context.WithCancel(t.Context())
	leave()
	reset := func(c http2.ErrCode) error { return http2.StreamError{StreamID: 1, Code: c} }
	for _, c := range []struct {
		name  string
		ctx   context.Context
		err   error
		code  codes.Code
		class outcome.Class
	}{
		{"the connection", t.Context(), io.ErrUnexpectedEOF, codes.Unavailable, outcome.Failed},
		{"a reset", t.Context(), reset(http2.ErrCodeInternal), codes.Internal, outcome.Failed},
		{"calm", t.Context(), reset(http2.ErrCodeEnhanceYourCalm), codes.ResourceExhausted, outcome.Failed},
		{"canceled there", t.Context(), reset(http2.ErrCodeCancel), codes.Canceled, outcome.Failed},
		{"canceled there, as it was late", late, reset(http2.ErrCodeCancel), codes.DeadlineExceeded, outcome.Canceled},
		{"late", late, context.DeadlineExceeded, codes.DeadlineExceeded, outcome.Canceled},
		{"the caller disconnected", left, context.Canceled, codes.Canceled, outcome.Canceled},
	} {
		resp := &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"application/grpc"}}, Body: failing{c.err}, Request: request(nil).WithContext(c.ctx)}
		h, _ := Dialect{}.Hear(request(nil), "/s.S/M")
		h.Answered(resp, outcome.Outcome{Class: outcome.OK})
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		said, ok := grpcclass.Header(resp.Trailer)
		o := resp.Body.(*answer).Outcome()
		if !ok || said.Class != outcome.OK && said.Code != grpcclass.Name(c.code) || o.Class != c.class || o.Undone {
			t.Errorf("%s: the caller is told %+v, weir %+v", c.name, said, o)
		}
	}
}

// weir's errors are gRPC statuses with HTTP status 200. Clients without gRPC get the HTTP status.
func TestErrorsAreWorded(t *testing.T) {
	f := &refuse.Facts{Status: 504, Code: refuse.ServiceUnavailable, Message: "50% – late", Final: true}
	w := httptest.NewRecorder()
	x, _ := Dialect{}.Hear(request(nil), "/s.S/M")
	x.Refuse(w, f)
	if h := w.Header(); w.Code != 200 || h.Get(statusField) != "4" || h.Get(messageField) != "50%25 %E2%80%93 late" || h.Get(pushbackField) != "-1" || w.Body.Len() > 0 {
		t.Errorf("%d %v %q", w.Code, h, w.Body)
	}
	for _, kind := range []string{"application/grpc-web", "application/json"} {
		w = httptest.NewRecorder()
		x, _ = Dialect{}.Hear(request(nil, "Content-Type", kind), "/s.S/M")
		if x.Refuse(w, f); w.Code != 504 || w.Header().Get(statusField) != "" {
			t.Errorf("%s: %d %v", kind, w.Code, w.Header())
		}
	}
}
