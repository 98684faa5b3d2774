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
	packed "github.com/seed1158cd35/weir/internal/unpack"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// read reads and parses the body and replaces it with a copy. A gzip body is forwarded unpacked, because its tokens can
// only be counted that way.
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
	x.tiers = x.d.o.Dollars && asksTier(body)
	if b := progressOf(r.Context()); b != nil && b.of.request != nil && b.of.request.AddedUsage {
		x.request.AddedUsage = true // weir asked for usage, not the caller
	}
	x.putBack(r, x.request.Asking())
	if len(body) > weighed {
		x.rest()
	}
	return nil
}

// putBack replaces the consumed body.
func (x *exchange) putBack(r *http.Request, parts [][]byte) {
	b := newReadBody(parts, r.Body)
	r.Body, r.ContentLength, r.TransferEncoding = b, b.size, nil
	x.sends = b
}

// bySize estimates the cost of a body that is not parsed from its size.
func (x *exchange) bySize(n int64) {
	x.estimate = x.d.o.Tokens.Estimate(x.route.Family, x.route.Model, tokens.Prompt{Bytes: n}, 0)
	x.guessed = true
}

// noRoom handles a body for which there is not enough memory. came is the part that was read, or the complete body if
// whole is true. If the configuration allows it, the body is forwarded unparsed. Otherwise the request is refused.
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
		x.bySize(x.d.o.MaxBody) // the maximum
	}
	return nil
}

// rest computes everything that is needed later from a large body, and releases its parsed values.
func (x *exchange) rest() {
	x.name()
	x.expected()
	if x.keeps() {
		x.hash = new(x.question())
		x.wording()
	}
	x.request.Rest()
}

// codingsOf returns the content codings of a body in order, without identity.
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

func readable(codings []string) bool {
	return len(codings) == 0 || len(codings) == 1 && (codings[0] == "gzip" || codings[0] == "x-gzip")
}

// unpack replaces a gzip body with its contents.
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
	r.Header.Del("X-Amz-Content-Sha256") // hash of the packed body
	return nil
}

// maxDecoded is how many bytes of an encoded answer are decoded, because a few bytes can decode to gigabytes. An answer with the
// largest batch of embeddings has 160 MB.
const maxDecoded = 256 << 20

// decode replaces an encoded answer with its contents. Some servers encode answers that were requested without encoding.
func decode(resp *http.Response) {
	codings := codingsOf(resp.Header)
	if len(codings) != 1 || !packed.Decodes(codings[0]) {
		return
	}
	resp.Body = struct {
		io.Reader
		io.Closer
	}{packed.NewReader(codings[0], resp.Body, maxDecoded), resp.Body}
	resp.ContentLength, resp.Uncompressed = -1, true
	resp.Header.Del("Content-Length")
	resp.Header.Del("Content-Encoding")
}

// A readBody is a body in memory, in consecutive parts. It is safe for concurrent use, because a transport may still
// read it after the response has arrived.
type readBody struct {
	size int64
	io.Closer

	mu    sync.Mutex // protects the fields below
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

// Len returns the number of unread bytes.
func (b *readBody) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return int(b.size - b.at)
}

// Seek returns to the start. Other positions are not supported.
func (b *readBody) Seek(offset int64, whence int) (int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if offset != 0 || whence != io.SeekStart || b.parts == nil {
		return b.at, errors.New("can only seek to the beginning")
	}
	b.at = 0
	return 0, nil
}

// drop releases the bytes if they were all read or if unread is true, and reports whether it did.
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
