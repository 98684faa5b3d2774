package httpx

import (
	"io"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/unpack"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// A start is a response body whose first bytes are read before the rest.
type start struct {
	io.ReadCloser
	bytes  [classify.StartBytes]byte
	n, off int
	err    error // of the first read
}

func (s *start) read(body io.ReadCloser) []byte {
	*s = start{ReadCloser: body}
	for s.n < len(s.bytes) && s.err == nil {
		var n int
		n, s.err = body.Read(s.bytes[s.n:])
		s.n += n
	}
	return s.bytes[:s.n]
}

func (s *start) Read(b []byte) (int, error) {
	if s.off < s.n {
		n := copy(b, s.bytes[s.off:s.n])
		if s.off += n; s.off < s.n || s.err != nil || n == len(b) {
			return n, nil
		}
		var more int // in the same piece, as without the start
		more, s.err = s.ReadCloser.Read(b[n:])
		return n + more, nil
	}
	if s.err != nil {
		return 0, s.err
	}
	return s.ReadCloser.Read(b)
}

// look reads the part of the body that can change the outcome: most of a failure, and for a success, enough to detect an error in
// it.
func (s *sender) look(a *attempt, r *classify.Response, resp *http.Response, timer *expiry) {
	r.Unpack = unpack.Bytes
	switch {
	case classify.NeedsBody(r.Method, r.Status, r.Header):
		if resp.StatusCode < http.StatusMultipleChoices {
			timer.moves(s.run.Left())
		}
		r.Body = peek(resp)
	case classify.NeedsStart(r.Method, r.Status, r.Header, asksGraphQL(s.req, r.Header)):
		if r.Header["Content-Encoding"] != nil {
			r.Body = peek(resp)
			return
		}
		first := a.start.read(resp.Body)
		if resp.Body = &a.start; classify.Starts(first) {
			r.Body = peek(resp)
		}
	}
}

func asksGraphQL(req *http.Request, h http.Header) bool {
	return strings.Contains(req.URL.Path, "graphql") || strings.Contains(req.URL.Path, "GraphQL") || strings.Contains(strings.Join(h["Content-Type"], ""), "graphql")
}
