package proxy

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// complaints is a log for tests.
type complaints struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *complaints) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *complaints) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A body that was not read to its end neither closes the connection nor makes the server panic.
func TestAConnectionOutlivesABodyThatNobodyRead(t *testing.T) {
	early := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/all" { // it responds without reading the body
			w.Header().Set("Connection", "close")
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	defer early.Close()
	refusing := brisk()
	refusing.MaxWait, refusing.Limits = -1, []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
	for name, p := range map[string]weir.Policy{"refused": refusing, "sent": brisk()} {
		var said complaints
		address := listen(t, newProxy(t, up(early.URL, p)), func(s *http.Server) { s.ErrorLog = log.New(&said, "", 0) })
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		in := bufio.NewReader(conn)
		for i, path := range []string{"/all", "/none", "/none", "/all", "/none"} {
			body := strings.Repeat("x", 100_000)
			if name == "sent" && path == "/all" {
				body = strings.Repeat("x", 1_000_000)
			}
			fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", path, len(body), body)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s, request %d: %v\n%s", name, i, err, said.String())
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if resp.Close {
				t.Errorf("%s, request %d: the connection ends with %s", name, i, resp.Status)
				break
			}
		}
		if strings.Contains(said.String(), "panic") {
			t.Errorf("%s: %s", name, said.String())
		}
	}
}

// The end of a body may arrive shortly after the response, and the connection stays usable. A much later end closes the
// connection, and is never read as a request.
func TestTheLastOfABodyMayComeAfterTheAnswer(t *testing.T) {
	const first, last = "0123456789", "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
	framings := map[string][3]string{
		"length":  {fmt.Sprintf("Content-Length: %d\r\n\r\n", len(first+last)), first, last},
		"chunked": {"Transfer-Encoding: chunked\r\n\r\n", "a\r\n" + first + "\r\n", fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(last), last)},
		"big":     {"Content-Length: 1000000\r\n\r\n", first, last},
	}
	for framing, parts := range framings {
		for _, answer := range []string{"", "and a body", "chunks"} {
			for after, whole := range map[time.Duration]bool{100 * time.Millisecond: framing != "big", time.Minute: false} {
				t.Run(fmt.Sprintf("%s, %q, %v", framing, answer, after), func(t *testing.T) {
					bubble(t, func(t *testing.T) {
						c := dig(t, weir.Policy{}, func(w http.ResponseWriter, r *http.Request) {
							w.Header().Set("Connection", "close") // it responds without reading the body
							_, _ = io.WriteString(w, answer)
							if answer == "chunks" {
								_ = http.NewResponseController(w).Flush()
							}
						})
						request := "POST /x HTTP/1.1\r\nHost: localhost\r\n" + parts[0] + parts[1]
						conn, in := c.send(request)
						for i := range 2 {
							resp, err := http.ReadResponse(in, nil)
							if err != nil || resp.StatusCode != http.StatusOK {
								t.Fatalf("request %d: %v %v", i, resp, err)
							}
							time.AfterFunc(after, func() { _, _ = io.WriteString(conn, parts[2]) })
							if body, err := io.ReadAll(resp.Body); err != nil || string(body) != answer {
								t.Errorf("request %d: %q, %v", i, body, err)
							}
							time.Sleep(2 * time.Minute)
							if _, err := io.WriteString(conn, request); whole != (err == nil) {
								t.Fatalf("request %d: the connection: %v", i, err)
							}
							if !whole {
								return
							}
						}
					})
				})
			}
		}
	}
}
