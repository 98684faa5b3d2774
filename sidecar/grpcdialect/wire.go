package grpcdialect

import (
	"encoding/base64"
	"encoding/binary"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// units of timeouts, the smallest first.
var units = [...]struct {
	letter byte
	unit   time.Duration
}{{'n', 1}, {'u', time.Microsecond}, {'m', time.Millisecond}, {'S', time.Second}, {'M', time.Minute}, {'H', time.Hour}}

// mostDigits is the largest number of digits in a timeout.
const mostDigits = 8

// readTimeout reads grpc-timeout. It treats an invalid value as absent. The value is still forwarded, so that the
// upstream can report the error.
func readTimeout(s string) (d time.Duration, ok bool) {
	if len(s) < 2 || len(s) > mostDigits+1 || strings.Trim(s[:len(s)-1], "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.ParseInt(s[:len(s)-1], 10, 64)
	if err != nil {
		return 0, false
	}
	for _, u := range units {
		if u.letter == s[len(s)-1] {
			if n > int64(math.MaxInt64/u.unit) {
				return math.MaxInt64, true
			}
			return time.Duration(n) * u.unit, true
		}
	}
	return 0, false
}

// writeTimeout returns d as grpc-timeout, in the smallest unit that fits, rounded down. The minimum is 1ns.
func writeTimeout(d time.Duration) string {
	const limit = 100_000_000
	d = max(d, 1)
	for _, u := range units {
		if n := int64(d / u.unit); n < limit {
			return strconv.FormatInt(n, 10) + string(u.letter)
		}
	}
	return strconv.Itoa(limit-1) + "H"
}

// setStatus writes a status. It escapes the message, which details contain once more.
func setStatus(h http.Header, s *status.Status) {
	h[statusField] = []string{strconv.Itoa(int(s.Code()))}
	if s.Message() != "" {
		h[messageField] = []string{escape(s.Message())}
	}
	if p := s.Proto(); len(p.GetDetails()) > 0 {
		if b, err := proto.Marshal(p); err == nil {
			h[detailsField] = []string{base64.RawStdEncoding.EncodeToString(b)}
		}
	}
}

// escape encodes a message for gRPC: the percent sign and all bytes other than printable ASCII become percent and two
// hex digits.
func escape(s string) string {
	const hex = "0123456789ABCDEF"
	b := make([]byte, 0, len(s))
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '%' {
			b = append(b, '%', hex[c>>4], hex[c&15])
		} else {
			b = append(b, c)
		}
	}
	return string(b)
}

// messages is the body of an attempt. It finds the beginnings of messages: each has one byte for compression and four
// bytes for its length.
type messages struct {
	io.ReadCloser
	second *atomic.Bool // set once there is more than one message

	head [5]byte
	have int   // bytes of the message's head
	left int64 // remaining bytes of the message
	seen int
}

// Read implements io.Reader.
func (m *messages) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if m.seen < 2 {
		m.look(p[:n])
	}
	return n, err
}

func (m *messages) look(b []byte) {
	for len(b) > 0 {
		if m.left > 0 {
			skip := min(m.left, int64(len(b)))
			m.left -= skip
			b = b[skip:]
			continue
		}
		if m.have == 0 {
			if m.seen++; m.seen > 1 {
				m.second.Store(true)
				return
			}
		}
		n := copy(m.head[m.have:], b)
		m.have += n
		b = b[n:]
		if m.have == len(m.head) {
			m.have, m.left = 0, int64(binary.BigEndian.Uint32(m.head[1:]))
		}
	}
}
