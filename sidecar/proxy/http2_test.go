package proxy

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// An HTTP/2-only upstream gets HTTP/2, with or without encryption. gRPC servers close connections with more than one
// ping every five minutes.
func TestHTTP2Alone(t *testing.T) {
	for _, scheme := range []string{"http", "https"} {
		u := up(scheme+"://h.example", brisk())
		u.HTTP2 = true
		p := newProxy(t, u)
		to := p.table.Load().targets["up"].base
		if p := to.Protocols; p.HTTP1() || p.HTTP2() != (scheme == "https") || p.UnencryptedHTTP2() != (scheme == "http") || to.HTTP2.SendPingTimeout < 5*time.Minute {
			t.Errorf("%s: %v, a ping every %v", scheme, p, to.HTTP2.SendPingTimeout)
		}
		if _, ok := to.sends.(withNews); !ok {
			t.Errorf("%s: sent by %T", scheme, to.sends)
		}
		again := u
		again.HTTP2 = false
		if err := p.Set([]Upstream{again}); err != nil {
			t.Fatal(err)
		}
		if now := p.table.Load().targets["up"].base; now.Transport == to.Transport || now.Protocols != nil {
			t.Errorf("%s: a reload changes nothing", scheme)
		}
	}
}

// A lateEnd is a body that ends after a second.
type lateEnd struct{}

func (lateEnd) Read([]byte) (int, error) { time.Sleep(time.Second); return 0, io.EOF }
func (lateEnd) Close() error             { return nil }

// A response that consists of trailers only is sent in one piece. A separate head would look like the beginning of an
// incomplete response.
func TestAnswersOfTrailersAloneAreOnePiece(t *testing.T) {
	for status, whole := range map[string]bool{"8": true, "": false} {
		synctest.Test(t, func(t *testing.T) {
			resp := &http.Response{StatusCode: 200, ProtoMajor: 2, Header: http.Header{}, Body: lateEnd{}}
			if status != "" {
				resp.Header.Set("Grpc-Status", status)
			}
			w := httptest.NewRecorder()
			if err := bring(w, httptest.NewRequest("POST", "/", nil), resp); err != nil || w.Flushed == whole {
				t.Errorf("status %q: sent before its end: %v, %v", status, w.Flushed, err)
			}
		})
	}
}
