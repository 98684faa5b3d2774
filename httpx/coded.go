package httpx

import (
	"io"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/unpack"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// maxDecoded is how many bytes of an encoded stream are decoded. The rest is not searched: a few bytes can decode to gigabytes.
const maxDecoded = 64 << 20

// A coded decodes an encoded stream as it arrives. It finds what the caller's client would find: an error, and an end that is cut
// inside the coding although the length is right. Other encoded bodies are not decoded, because that takes as long as the call.
type coded struct {
	coding string
	in     *io.PipeWriter
	result chan error
}

// newCoded returns a coded for a response, and the search for errors in its decoded bytes; nil if it is not an encoded stream.
func newCoded(resp *http.Response) (c *coded, errors *classify.Stream) {
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	switch coding {
	case "gzip", "x-gzip", "deflate", "br", "zstd":
	default:
		return nil, nil
	}
	t, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	switch strings.ToLower(strings.TrimSpace(t)) {
	case "", "application/json", "application/octet-stream", "binary/octet-stream", "application/x-amz-json-1.0", "application/x-amz-json-1.1":
		return nil, nil // nearly always one document
	}
	h := resp.Header.Clone()
	h.Del("Content-Encoding")
	if errors = classify.NewStream(h); errors == nil {
		return nil, nil
	}
	c = &coded{coding: coding, result: make(chan error, 1)}
	var out *io.PipeReader
	out, c.in = io.Pipe()
	go c.decode(out, errors.Feed)
	return c, errors
}

// decode decodes a stream. It reads the rest after an error, so that the body never waits.
func (c *coded) decode(out *io.PipeReader, feed func([]byte)) {
	err := unpack.Copy(c.coding, out, maxDecoded, feed)
	_, _ = io.Copy(io.Discard, out)
	c.result <- err
}

func (c *coded) write(b []byte) { _, _ = c.in.Write(b) }

// end reports whether the stream is broken. whole means that the body has arrived completely.
func (c *coded) end(whole bool) bool {
	_ = c.in.Close()
	return <-c.result != nil && whole
}
