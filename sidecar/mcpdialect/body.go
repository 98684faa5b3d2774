package mcpdialect

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
)

const (
	maxBody = 16 << 20        // bytes
	room    = 5 * time.Second // longest wait of a body for memory
)

// read reads the complete body, because the ID may be its last member, and replaces it with a copy in memory.
func (x *exchange) read(r *http.Request) ([]byte, *refuse.Facts) {
	if c := strings.TrimSpace(r.Header.Get("Content-Encoding")); c != "" && !strings.EqualFold(c, "identity") {
		return nil, &refuse.Facts{Status: http.StatusUnsupportedMediaType, Code: refuse.ValidationError, Final: true, Message: "the body must not have a Content-Encoding"}
	}
	if r.ContentLength > maxBody {
		return nil, tooLarge(buffers.ErrTooLarge)
	}
	x.held = buffers.Bodies.Claim(2*max(0, r.ContentLength), 0)
	b, err := buffers.Read(r.Context(), io.LimitReader(r.Body, maxBody+1), r.ContentLength, x.held, room)
	x.held.Whole()
	switch {
	case errors.Is(err, buffers.ErrTooLarge), errors.Is(err, buffers.ErrFull):
		return nil, tooLarge(err)
	case err != nil:
		return nil, httpx.BrokenBody(err)
	case len(b) > maxBody:
		return nil, tooLarge(buffers.ErrTooLarge)
	}
	x.held.Give(x.held.Has() - int64(cap(b)))
	x.sends = &content{Closer: r.Body, size: int64(len(b)), rest: bytes.NewReader(b)}
	r.Body, r.ContentLength, r.TransferEncoding = x.sends, int64(len(b)), nil
	return b, nil
}

func tooLarge(err error) *refuse.Facts {
	if errors.Is(err, buffers.ErrFull) {
		return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "the request was not accepted: weir's memory for bodies is full"}
	}
	return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true, Message: "the body is larger than 16 MiB, or than weir's memory for bodies"}
}

// End implements httpx.Ender.
func (x *exchange) End() {
	if x.held != nil {
		x.held.Give(x.held.Has())
	}
}

// Release implements httpx.Releaser. A body that the upstream still reads stays in memory until the request ends.
func (x *exchange) Release(own bool) {
	if x.sends != nil && x.sends.drop(own) {
		x.End()
	}
}

// content is a body in memory. It is safe for concurrent use, because a transport may still read it after the response has
// arrived.
type content struct {
	io.Closer
	size int64

	mu   sync.Mutex // protects rest
	rest *bytes.Reader
}

func (c *content) Read(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest.Read(p)
}

// Len returns the number of unread bytes.
func (c *content) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rest.Len()
}

// Seek returns to the start for another attempt.
func (c *content) Seek(offset int64, whence int) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.rest.Size() < c.size {
		return 0, errors.New("the body was released")
	}
	return c.rest.Seek(offset, whence)
}

// drop releases the bytes if they were all read or if unread is true, and reports whether it did.
func (c *content) drop(unread bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !unread && c.rest.Len() > 0 {
		return false
	}
	c.rest = bytes.NewReader(nil)
	return true
}
