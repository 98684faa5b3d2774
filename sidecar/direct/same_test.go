package direct

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"testing"
)

// oddities are responses whose end is ambiguous, or that are invalid.
var oddities = []string{
	fine,
	"HTTP/1.1 200 OK\r\n\r\nto the end",
	"HTTP/1.0 200 OK\r\n\r\nto the end",
	"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
	"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding : chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\n Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;a=b\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\nok\n0\n\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-2\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nok\r\n0\r\n\r\n",
	"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: Content-Length\r\n\r\n2\r\nok\r\n0\r\nContent-Length: 9\r\n\r\n",
	"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
	"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n",
	"HTTP/1.1 100 Continue\r\n\r\n" + fine,
	"HTTP/1.1 199 Odd\r\n\r\n" + fine,
	"HTTP/1.1 103 Early Hints\r\nContent-Length: 5\r\n\r\n" + fine,
	"HTTP/1.1 099 Low\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 999 High\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 20 OK\r\n\r\n",
	"HTTP/1.1 2000 OK\r\n\r\n",
	"HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/2.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok",
	"ICY 200 OK\r\nContent-Length: 2\r\n\r\nok",
	"\r\n" + fine,
	"HTTP/1.1 200 OK\r\n: x\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nA\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nA: \x00\r\nContent-Length: 2\r\n\r\nok",
	"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n",
	"",
	fine + fine,
	fine + "x",
}

// The transport returns the same result as net/http, even for unusual responses.
func TestOddAnswersAreThoseOfNetHTTP(t *testing.T) {
	for _, answer := range oddities {
		for _, method := range []string{"GET", "HEAD", "DELETE", "POST"} {
			s := serve(t, func(_ int, r *http.Request, c net.Conn) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				_, _ = io.WriteString(c, answer)
				return false
			})
			ask := func() *http.Request {
				r := request(t, method, s.address)
				if method == "POST" {
					put(r, "a body")
				}
				return r
			}
			got := outcomeOf(open(t).RoundTrip(ask()))
			there := &http.Transport{DisableCompression: true, DisableKeepAlives: true}
			want := outcomeOf(there.RoundTrip(ask()))
			if got != want {
				t.Errorf("%s, %q:\n got %s\nwant %s", method, answer, got, want)
			}
		}
	}
}

// outcomeOf returns all visible parts of a response.
func outcomeOf(resp *http.Response, err error) string {
	if err != nil {
		return "an error"
	}
	b, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	names := make([]string, 0, len(resp.Header))
	for name, values := range resp.Header {
		names = append(names, fmt.Sprint(name, values))
	}
	slices.Sort(names)
	return fmt.Sprintf("%s %d %d %q %v %q %v trailers %v", resp.Proto, resp.StatusCode, resp.ContentLength, resp.Status, names, b, err != nil, resp.Trailer)
}

// The transport reuses a connection when net/http does.
func TestConnectionsAreKeptAsNetHTTPKeepsThem(t *testing.T) {
	for _, answer := range []string{
		fine,
		"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nConnection: a, Close\r\nContent-Length: 2\r\n\r\nok",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
		"HTTP/1.1 204 No Content\r\n\r\n",
		"HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\n",
		"HTTP/1.1 103 Early Hints\r\n\r\n" + fine,
		"HTTP/1.1 500 Broken\r\nContent-Length: 2\r\n\r\nok",
	} {
		count := func(to http.RoundTripper) int {
			s := serve(t, says(answer))
			for range 3 {
				if _, err := get(t, to, s.address); err != nil {
					t.Fatalf("%q: %v", answer, err)
				}
			}
			opened, _ := s.counts()
			return opened
		}
		there := &http.Transport{DisableCompression: true}
		got, want := count(open(t)), count(there)
		for range 10 {
			if got == want {
				break
			}
			want = count(there) // net/http keeps no connection whose request is not reported as written within 50 ms, which can happen on a busy machine
		}
		if got != want {
			t.Errorf("%q: %d connections, want %d", answer, got, want)
		}
		there.CloseIdleConnections()
	}
}
