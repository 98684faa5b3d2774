package proxy

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// After the response, weir waits only a limited time for the rest of a body.
func TestNoRequestFreesItsBodyOfBounds(t *testing.T) {
	for _, field := range []string{"X-None: 1", "Upgrade: anything", "Content-Type: application/grpc-web+proto"} {
		for _, answer := range []string{"", "chunks"} {
			t.Run(field+answer, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					c := dig(t, weir.Policy{}, func(w http.ResponseWriter, r *http.Request) {
						w.Header().Set("Connection", "close")
						w.WriteHeader(400)
						_, _ = io.WriteString(w, answer)
						if answer != "" {
							_ = http.NewResponseController(w).Flush()
						}
					})
					begun := time.Now()
					conn, in := c.send("POST /x HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\nContent-Length: 100\r\n\r\n0123456789")
					_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
					resp, err := http.ReadResponse(in, nil)
					if err != nil {
						t.Fatal(err)
					}
					b, err := io.ReadAll(resp.Body)
					c.late(fmt.Sprintf("the answer %s %q %v", resp.Status, b, err), begun, 10*time.Second)
					_, err = in.ReadByte()
					c.late(fmt.Sprintf("the connection's end %v", err), begun, 2*time.Minute)
				})
			})
		}
	}
}

// A response with trailers that is sent before the body's end arrives completely.
func TestTrailersOfAnEarlyAnswerCome(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := dig(t, weir.Policy{}, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			w.Header().Set("Connection", "close")
			_, _ = io.WriteString(w, "whole")
			w.Header().Set("X-Sum", "5")
		})
		_, in := c.send("POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n0123456789")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || string(b) != "whole" || resp.Trailer.Get("X-Sum") != "5" {
			t.Errorf("%q %v %v", b, err, resp.Trailer)
		}
		time.Sleep(time.Minute)
	})
}

// weir's own wait replaces the upstream's waits.
func TestAnAnswerSaysOneWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		p := brisk()
		p.MaxWait, p.Limits = -1, []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}}}
		c := dig(t, p, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Ms-Retry-After-Ms", "1")
			w.Header().Set("X-Amz-Retry-After", "1")
			w.WriteHeader(503)
		})
		_, in := c.send("GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if h := resp.Header; h.Get("X-Ms-Retry-After-Ms") == "1" || h.Get("X-Amz-Retry-After") == "1" {
			t.Errorf("%v", h)
		}
		time.Sleep(time.Minute)
	})
}

// A body that a dialect reads must arrive in time, whatever headers the request has.
func TestADialectsBodyMustComeWhateverItSaysOfItself(t *testing.T) {
	for _, field := range []string{"X-None: 1", "Upgrade: anything", "Content-Type: application/grpc"} {
		bubble(t, func(t *testing.T) {
			c := dig(t, weir.Policy{}, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }, func(u *Upstream) { u.Dialect = greedy{} })
			begun := time.Now()
			conn, in := c.send("POST /x HTTP/1.1\r\nHost: localhost\r\n" + field + "\r\nContent-Length: 1000\r\n\r\n")
			_ = conn.SetReadDeadline(time.Now().Add(time.Hour))
			_, err := http.ReadResponse(in, nil)
			c.late(fmt.Sprintf("%s: the answer (%v)", field, err), begun, 2*time.Minute)
			_ = conn.Close()
			time.Sleep(time.Minute)
		})
	}
}
