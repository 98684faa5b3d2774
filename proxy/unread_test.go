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
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/limit"
)

// complaints is a log that tests read.
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

// A body that nobody has read, or not to its end, costs neither the connection nor a
// panic of the server.
func TestAConnectionOutlivesABodyThatNobodyRead(t *testing.T) {
	early := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/all" { // it answers without a look at the body
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
