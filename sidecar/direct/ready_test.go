package direct

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// A sparing source returns all its data in one read, and records further reads.
type sparing struct {
	has   string
	asked bool
}

func (s *sparing) Read(p []byte) (int, error) {
	if s.has == "" {
		s.asked = true
		return 0, io.ErrUnexpectedEOF
	}
	n := copy(p, s.has)
	s.has = s.has[n:]
	return n, nil
}

func TestWhatIsReadyIsReadWithoutWaiting(t *testing.T) {
	const last = "0\r\nX-T: 1\r\n\r\n"
	const fixed = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789"
	const parts = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n01234\r\n12;x=y\r\n\r\nabcdefghijklmnop\r\n1\r\n0\r\n" + last
	end, _ := net.Pipe()
	for _, all := range []string{fixed, parts} {
		head := strings.Index(all, "\r\n\r\n") + 4
		for cut := head; cut <= len(all); cut++ {
			for _, size := range []int{1, 3, 100} {
				from := &sparing{has: all[:cut]}
				in := bufio.NewReader(from)
				resp, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				b := &body{ctx: t.Context(), c: &conn{in: in, net: end}, whole: resp.Body, parts: len(resp.TransferEncoding) > 0, stop: func() bool { return false }}
				if cut == len(all)-len(last) && !b.Ready() {
					t.Errorf("%q: all of it has come, and is not ready", all[head:cut])
				}
				for p := make([]byte, size); b.Ready(); {
					n, err := b.Read(p)
					if from.asked || n == 0 && err == nil {
						t.Fatalf("%q: what was ready brought %d bytes, %v, and was waited for: %v", all[head:cut], n, err, from.asked)
					}
				}
			}
		}
	}
}
