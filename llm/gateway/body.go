package gateway

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// read reads and parses the body, and puts it back. One that is packed is sent on unpacked,
// or nobody would count what it asks for.
func (x *exchange) read(r *http.Request) *refuse.Facts {
	codings := codingsOf(r.Header)
	if !readable(codings) {
		return &refuse.Facts{Status: http.StatusUnsupportedMediaType, Code: refuse.ValidationError, Final: true,
			Message: "the tokens of the body cannot be counted: its Content-Encoding is " + doc.Quote(strings.Join(codings, ", ")) + "; send it without encoding, or with gzip"}
	}
	if len(codings) > 0 {
		if err := unpack(r); err != nil {
			return unread(err, x.d.o.MaxBody)
		}
	}
	body, err := x.readAll(r)
	if err != nil {
		return x.noRoom(r, body, false, err)
	}
	done, err := x.table(r, body)
	if err != nil {
		return x.noRoom(r, body, true, err)
	}
	defer done()
	if x.request, err = x.route.Parse(body); err != nil {
		return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: err.Error(), Final: true}
	}
	if x.d.o.Model != "" && x.request.Nameless() {
		_, _, body = x.request.For(x.d.o.Model)
		if x.request, err = x.route.Parse(body); err != nil {
			return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Message: err.Error(), Final: true}
		}
	}
	x.route = x.request.Route
	if b := progressOf(r.Context()); b != nil && b.of.request != nil && b.of.request.AddedUsage {
		x.request.AddedUsage = true // it asks already, but not for its caller
	}
	x.putBack(r, x.request.Asking())
	if len(body) > weighed {
		x.rest()
	}
	return nil
}

// putBack puts a body that was read where it came from.
func (x *exchange) putBack(r *http.Request, parts [][]byte) {
	b := newReadBody(parts, r.Body)
	r.Body, r.ContentLength, r.TransferEncoding = b, b.size, nil
	x.sends = b
}

// bySize estimates what a body that is not looked into will cost.
func (x *exchange) bySize(n int64) {
	x.estimate = x.d.o.Tokens.Estimate(x.route.Family, x.route.Model, tokens.Prompt{Bytes: n}, 0)
	x.guessed = true
}

// noRoom is what becomes of a body that was read so far, or whole, and no further. If it may pass, it does so
// unread.
func (x *exchange) noRoom(r *http.Request, came []byte, whole bool, err error) *refuse.Facts {
	if !x.d.o.Pass || !errors.Is(err, buffers.ErrTooLarge) && !errors.Is(err, buffers.ErrFull) {
		return unread(err, x.d.o.MaxBody)
	}
	if whole {
		x.putBack(r, [][]byte{came})
		x.bySize(r.ContentLength)
		return nil
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(came), r.Body), r.Body}
	if x.bySize(r.ContentLength); r.ContentLength < 0 {
		x.bySize(x.d.o.MaxBody) // at most
	}
	return nil
}

// rest keeps of a large body what will be asked of it, and gives up the table that was made of
// it.
func (x *exchange) rest() {
	x.name()
	x.expected()
	if x.keeps() {
		x.hash = new(x.question())
		x.wording()
	}
	x.request.Rest()
}

// codingsOf are the codings that a body has, in their order. Identity is none.
func codingsOf(h http.Header) (all []string) {
	for _, line := range h["Content-Encoding"] {
		for name := range strings.SplitSeq(line, ",") {
			if name = strings.ToLower(strings.TrimSpace(name)); name != "" && name != "identity" {
				all = append(all, name)
			}
		}
	}
	return all
}

// readable reports whether a body of the codings is read.
func readable(codings []string) bool {
	return len(codings) == 0 || len(codings) == 1 && (codings[0] == "gzip" || codings[0] == "x-gzip")
}

// unpack puts what a body holds that is packed with gzip in its place.
func unpack(r *http.Request) error {
	plain, err := gzip.NewReader(r.Body)
	if err != nil {
		return err
	}
	r.Body = struct {
		io.Reader
		io.Closer
	}{plain, r.Body}
	r.ContentLength = -1
	r.Header.Del("Content-Encoding")
	r.Header.Del("X-Amz-Content-Sha256") // of what was packed
	return nil
}

// A readBody is a body that has been read: parts that follow each other. It is safe for concurrent use: a transport may
// still read it when the answer has come.
type readBody struct {
	size int64
	io.Closer

	mu    sync.Mutex // of what follows
	parts [][]byte
	at    int64
}

func newReadBody(parts [][]byte, body io.Closer) *readBody {
	b := &readBody{parts: parts, Closer: body}
	for _, p := range parts {
		b.size += int64(len(p))
	}
	return b
}

func (b *readBody) Read(to []byte) (n int, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	from := b.at
	for _, p := range b.parts {
		if from < int64(len(p)) {
			n = copy(to, p[from:])
			b.at += int64(n)
			return n, nil
		}
		from -= int64(len(p))
	}
	return 0, io.EOF
}

// Len is how much is left.
func (b *readBody) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.size - b.at)
}

// Seek goes back to the beginning.
func (b *readBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if offset != 0 || whence != io.SeekStart || b.parts == nil {
		return b.at, errors.New("can only seek to the beginning")
	}
	b.at = 0
	return 0, nil
}

// drop gives up the bytes if all of them have been read, or if nobody will read them, and reports whether it did.
func (b *readBody) drop(unread bool) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !unread && b.at < b.size {
		return false
	}
	b.parts = nil
	return true
}

func unread(err error, most int64) *refuse.Facts {
	switch {
	case errors.Is(err, buffers.ErrTooLarge):
		return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true, Message: "the body, or its metadata: " + err.Error()}
	case errors.Is(err, buffers.ErrFull):
		return &refuse.Facts{Status: http.StatusServiceUnavailable, Code: refuse.ServiceUnavailable, Wait: time.Second, Message: "the body was not read: " + err.Error()}
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return &refuse.Facts{Status: http.StatusRequestEntityTooLarge, Code: refuse.ValidationError, Final: true,
			Message: "the body is larger than the " + size(most) + " that weir accepts"}
	}
	return httpx.BrokenBody(err)
}
