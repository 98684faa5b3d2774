package delivery_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// An error in a complete body fails the attempt. A body that breaks off after a success does not, because the upstream has done the
// work, but the attempt names it.
func TestSuccessWithBrokenBodyIsCompletedAndNamed(t *testing.T) {
	u, err := weir.New("a", weir.Policy{}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		kind   string
		body   io.Reader
		class  outcome.Class
		answer string
		code   string
	}{
		{"text/plain", strings.NewReader("done"), outcome.OK, "done", ""},
		{"text/plain", io.MultiReader(strings.NewReader("do"), errReader{io.ErrUnexpectedEOF}), outcome.OK, "do", "the response body broke off: eof"},
		{"application/grpc-web", strings.NewReader("\x00\x00\x00\x00\x01a"), outcome.OK, "\x00\x00\x00\x00\x01a", "the response body broke off: cut"},
		{"text/event-stream", strings.NewReader("event: error\ndata: gone\n\n"), outcome.Failed, "event: error\ndata: gone\n\n", "error event"},
		{"text/event-stream", io.MultiReader(strings.NewReader("data: a\n"), errReader{io.ErrUnexpectedEOF}), outcome.OK, "data: a\n", "the response body broke off: eof"},
	} {
		s := &delivery.HTTP{Upstream: u, URL: &url.URL{Scheme: "http", Host: "a.test"}, Base: roundTrip(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {c.kind}}, ContentLength: -1, Body: io.NopCloser(c.body), Request: r}, nil
		})}
		a := s.Send(t.Context(), &delivery.Delivery{Request: delivery.Request{Method: "POST", Path: "/"}}, func(context.CancelCauseFunc) error { return nil })
		if a.Outcome.Class != c.class || a.Outcome.Code != c.code || string(a.Body) != c.answer || a.Status != 200 {
			t.Errorf("%s: %d %v %q %q, want %v %q %q", c.kind, a.Status, a.Outcome.Class, a.Outcome.Code, a.Body, c.class, c.code, c.answer)
		}
	}
}

type errReader struct{ error }

func (r errReader) Read([]byte) (int, error) { return 0, r.error }
