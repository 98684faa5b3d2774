package httpx_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/outcome"
)

// answering returns a transport to a server that answers each request with exactly these bytes, and then closes the connection
// unless it stalls.
func answering(t *testing.T, answer string, stalls bool) *http.Transport {
	base := &http.Transport{DisableKeepAlives: true, DisableCompression: true, DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = far.Read(make([]byte, 4096))
			_, _ = io.WriteString(far, answer)
			if stalls {
				_, _ = io.Copy(io.Discard, far)
			}
			_ = far.Close()
		}()
		return near, nil
	}}
	t.Cleanup(base.CloseIdleConnections)
	return base
}

const eventStream = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"

// encoded returns a response with a Content-Encoding and the right length.
func encoded(coding, kind, body string) string {
	return fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s", coding, kind, len(body), body)
}

func gzipped(text string) string {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

func zipped(text string) string {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	_, _ = io.WriteString(z, text)
	_ = z.Close()
	return b.String()
}

// longText is a text that is longer than 400 bytes in every coding.
var longText = func() string {
	var b bytes.Buffer
	for i := range 400 {
		fmt.Fprintf(&b, "data: %d\n\n", i*i*7919%10007)
	}
	return b.String()
}()

// brokenAnswers are responses that fail after their headers.
var brokenAnswers = []struct {
	name, answer string
	stalls       bool
}{
	{"short length", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc", false},
	{"short length of a rejection", "HTTP/1.1 404 Not Found\r\nContent-Length: 1000\r\n\r\nabc", false},
	{"no byte of the body", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", false},
	{"cut in a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nabc", false},
	{"cut after a chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false},
	{"cut in the last chunk", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n", false},
	{"size that is none", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nzz\r\n", false},
	{"stall", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nabc", true},
	{"stall of chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", true},
	{"error event", eventStream + "\r\ndata: a\n\nevent: error\ndata: gone\n\n", false},
	{"error event with length", eventStream + "Content-Length: 26\r\n\r\nevent: error\ndata: gone\n\n\n\n", false},
	{"error object", eventStream + "\r\ndata: a\n\ndata: {\"error\":{\"message\":\"overloaded\"}}\n\n", false},
	{"error line", "HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\n\r\n{\"a\":1}\n{\"error\":\"gone\"}", false},
	{"error trailer", "HTTP/1.1 200 OK\r\nTrailer: Grpc-Status\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nGrpc-Status: 14\r\n\r\n", false},
	{"error trailer of a gateway", "HTTP/1.1 200 OK\r\nTrailer: X-Stream-Error\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Stream-Error: block not found\r\n\r\n", false},
	{"error trailer with a code", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Error-Code: 7\r\n\r\n", false},
	{"status trailer", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nStatus: 500 Internal Server Error\r\n\r\n", false},
	{"gzip that is cut", encoded("gzip", "text/event-stream", gzipped(longText)[:400]), false},
	{"gzip without its end", encoded("gzip", "text/event-stream", gzipped(longText)[:len(gzipped(longText))-8]), false},
	{"gzip with a wrong sum", encoded("gzip", "text/event-stream", gzipped("a")[:len(gzipped("a"))-8]+"\x00\x00\x00\x00\x01\x00\x00\x00"), false},
	{"gzip of which only the header arrives", encoded("gzip", "text/event-stream", gzipped("a")[:10]), false},
	{"gzip in chunks that is cut", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n190\r\n" + gzipped(longText)[:400] + "\r\n0\r\n\r\n", false},
	{"deflate that is cut", encoded("deflate", "text/event-stream", zipped(longText)[:400]), false},
	{"br that is damaged", encoded("br", "text/event-stream", "\x8b\xff\xff\xff\xff"), false},
	{"zstd that is cut", encoded("zstd", "text/event-stream", "\x28\xb5\x2f\xfd\x04\x00\x99"), false},
	{"error event in gzip", encoded("gzip", "text/event-stream", gzipped("data: a\n\nevent: error\ndata: gone\n\n")), false},
	{"error event in gzip without a line end", encoded("GZIP", "text/event-stream", gzipped("data: a\n\nevent: error\ndata: gone")), false},
	{"stream in gzip that is cut", encoded("gzip", "text/event-stream", gzipped(longText)[:400]), false},
	{"error event without a line end, with length", eventStream + "Content-Length: 24\r\n\r\nevent: error\ndata: gone\n", false},
	{"frame of AWS that is cut", "HTTP/1.1 200 OK\r\nContent-Type: application/vnd.amazon.eventstream\r\nContent-Length: 15\r\n\r\n\x00\x00\x00\xc8\x00\x00\x00\x00\x00\x00\x00\x00abc", false},
	{"gRPC-Web without a status", "HTTP/1.1 200 OK\r\nContent-Type: application/grpc-web+proto\r\nContent-Length: 8\r\n\r\n\x00\x00\x00\x00\x03abc", false},
	{"part that is too short, with its length", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-199/500\r\nContent-Length: 3\r\n\r\nabc", false},
	{"part that is too short, in chunks", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-3/*\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", false},
	{"error as the last element", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"a\":1},{\"error\":{\"code\":503,\"status\":\"UNAVAILABLE\"}}]", false},
	{"error as the last value", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"result\":1}\n{\"error\":{\"code\":14}}", false},
	{"part without a byte", "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 100-199/500\r\nContent-Length: 0\r\n\r\n", false},
	{"error trailer that was not announced", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nGrpc-Status: 13\r\n\r\n", false},
}

type heard struct {
	ended, calls, records []outcome.Class
	gaveUp                int
	counts                *weir.Counts
}

func (h *heard) events() weir.Events {
	return weir.Events{
		Counts:   func(c *weir.Counts) { h.counts = c },
		Ended:    func(e weir.Ended) { h.ended = append(h.ended, e.Outcome.Class) },
		Done:     func(d weir.Done) { h.calls = append(h.calls, d.Class) },
		GaveUp:   func(weir.GaveUp) { h.gaveUp++ },
		Recorded: func(r *weir.Record) bool { h.records = append(h.records, r.Class); return false },
	}
}

// counted returns how many attempts and calls were counted with a class.
func (h *heard) counted(class outcome.Class) (attempts, calls uint64) {
	for c := range h.counts.All() {
		switch {
		case c.Word != class.String():
		case c.What == weir.Attempts:
			attempts += c.N
		case c.What == weir.Calls:
			calls += c.N
		}
	}
	return attempts, calls
}

func TestBrokenBodyIsAFailureEverywhere(t *testing.T) {
	for _, c := range brokenAnswers {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, p := new(heard), steady()
				p.Breaker = breaker.Config{}
				u := open(t, p, weir.Options{Events: h.events()})
				tr := httpx.NewTransport(u, answering(t, c.answer, c.stalls))
				n := 0
				for u.Breaker("").Look(u.Now()).Phase == breaker.Closed && n < 20 {
					resp, err := tr.RoundTrip(request(t, t.Context(), "GET", nil))
					if err != nil {
						t.Fatal(err)
					}
					if n++; len(h.ended) != n-1 {
						t.Fatalf("%d attempts were reported at the head of answer %d", len(h.ended), n)
					}
					_, _ = io.Copy(io.Discard, resp.Body)
					_ = resp.Body.Close()
				}
				attempts, calls := h.counted(outcome.Failed)
				if attempts != uint64(n) || calls != uint64(n) || h.gaveUp != n {
					t.Errorf("counted %d attempts and %d calls as failed, %d given up, want %d of each", attempts, calls, h.gaveUp, n)
				}
				for i, all := range [][]outcome.Class{h.ended, h.calls, h.records} {
					if len(all) != n || all[0] != outcome.Failed || all[n-1] != outcome.Failed {
						t.Errorf("%d: observers heard %v, want %d failures", i, all, n)
					}
				}
				if got := u.Breaker("").Look(u.Now()).Phase; got != breaker.Open {
					t.Errorf("the breaker is %v, want open", got)
				}
			})
		})
	}
}

func TestWholeBodyIsASuccess(t *testing.T) {
	for _, answer := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 200 OK\r\n\r\nno length",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nGrpc-Status: 0\r\n\r\n",
		eventStream + "\r\nevent: message\ndata: an error: event: error\n\n",
		encoded("gzip", "", gzipped(longText)), encoded("gzip", "", gzipped("a")+gzipped(longText)), encoded("gzip", "", gzipped("a")+"junk"), encoded("gzip", "", gzipped("a")+"\x00"),
		encoded("gzip", "application/json", `{"not": "encoded"}`), encoded("gzip", "", ""), encoded("deflate", "", zipped(longText)), encoded("deflate", "", zipped("a")[2:]), encoded("compress", "", "abc"),
		encoded("gzip", "text/event-stream", gzipped(longText)), encoded("gzip", "text/event-stream", "data: not encoded\n\n"), encoded("br", "", "\x0b\x00\x80a\x03"),
		encoded("gzip", "", gzipped(longText)[:400]), // only streams are decoded
		"HTTP/1.1 206 Partial Content\r\nContent-Encoding: gzip\r\nContent-Range: bytes 0-399/900\r\nContent-Length: 400\r\n\r\n" + gzipped(longText)[:400],
		"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-6/*\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 4-6/500\r\n\r\nabc",
		"HTTP/1.1 206 Partial Content\r\nContent-Range: items 4-9/500\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 206 Partial Content\r\nContent-Type: multipart/byteranges; boundary=b\r\nContent-Length: 5\r\n\r\n--b--",
		"HTTP/1.1 200 OK\r\nContent-Range: bytes 0-99/100\r\nContent-Length: 3\r\n\r\nabc",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n[{\"error\":{\"code\":404,\"status\":\"NOT_FOUND\"}},{\"a\":1}]",
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n{\"error\":{\"code\":404}}",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Error: none\r\nX-Status: 200\r\nX-Errors-Seen: 7\r\n\r\n",
	} {
		for _, reads := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				h := new(heard)
				tr := httpx.NewTransport(open(t, steady(), weir.Options{Events: h.events()}), answering(t, answer, false))
				resp, err := tr.RoundTrip(request(t, t.Context(), "GET", nil))
				if err != nil {
					t.Fatal(err)
				}
				if reads {
					_, _ = io.Copy(io.Discard, resp.Body)
				}
				_ = resp.Body.Close()
				if attempts, calls := h.counted(outcome.OK); attempts != 1 || calls != 1 || h.gaveUp != 0 {
					t.Errorf("%q, read %v: %d attempts and %d calls succeeded, %d given up, want 1, 1 and 0", answer, reads, attempts, calls, h.gaveUp)
				}
			})
		}
	}
}

// A caller that leaves while a body arrives implies nothing about the upstream.
func TestCallerWhoLeavesABodyIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := new(heard)
		tr := httpx.NewTransport(open(t, steady(), weir.Options{Events: h.events()}), answering(t, "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", true))
		ctx, cancel := context.WithCancel(t.Context())
		resp, err := tr.RoundTrip(request(t, ctx, "GET", nil))
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(time.Second, cancel)
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if attempts, calls := h.counted(outcome.Canceled); attempts != 1 || calls != 1 {
			t.Errorf("%d attempts and %d calls were canceled, want 1 of each", attempts, calls)
		}
	})
}

// slowBody returns a number of lines, one each second, and then an error.
type slowBody struct {
	lines int
	end   error
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.lines--; b.lines < 0 {
		return 0, b.end
	}
	time.Sleep(time.Second)
	return copy(p, "line\n"), nil
}

func (*slowBody) Close() error { return nil }

// Streams that take minutes count as successes of the breaker from their start. Otherwise only streams that fail early would have
// ended.
func TestStreamsUnderWayKeepTheBreakerClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Breaker = breaker.Config{Share: 0.5, MinCalls: 10}
		p.Retry.Attempts = 1
		u, n := open(t, p, weir.Options{}), 0
		tr := httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
			if n++; n%4 == 0 {
				return response(500, body("")), nil
			}
			return response(200, &slowBody{60, io.EOF}), nil
		}))
		for range 100 {
			resp, err := tr.RoundTrip(request(t, t.Context(), "GET", nil))
			if resp == nil {
				t.Fatalf("after %d calls: %v, want a breaker that stays closed", n, err)
			}
			go func() {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}()
			time.Sleep(50 * ms)
		}
		synctest.Wait()
		time.Sleep(2 * time.Minute)
	})
}

// A probe whose response is a long stream closes the breaker once the stream has lasted a second, and not before.
func TestProbeSucceedsWhileItsStreamComes(t *testing.T) {
	for _, c := range []struct {
		lines int
		want  breaker.Phase
	}{{0, breaker.Open}, {60, breaker.Closed}} {
		synctest.Test(t, func(t *testing.T) {
			p := steady()
			p.Breaker = breaker.Config{Consecutive: 1, Successes: 1}
			u := open(t, p, weir.Options{})
			u.Breaker("").ForceOpen(u.Now(), 1)
			time.Sleep(ms)
			tr := httpx.NewTransport(u, trip(func(*http.Request) (*http.Response, error) {
				return response(200, &slowBody{c.lines, io.ErrUnexpectedEOF}), nil
			}))
			resp, err := tr.RoundTrip(request(t, t.Context(), "GET", nil))
			if err != nil {
				t.Fatal(err)
			}
			if got := u.Breaker("").Look(u.Now()).Phase; got != breaker.HalfOpen {
				t.Errorf("at the head of the answer the breaker is %v, want half-open", got)
			}
			for range 3 {
				_, _ = resp.Body.Read(make([]byte, 100))
			}
			if got := u.Breaker("").Look(u.Now()).Phase; got != c.want {
				t.Errorf("after %d lines the breaker is %v, want %v", min(c.lines, 3), got, c.want)
			}
			_ = resp.Body.Close()
		})
	}
}
