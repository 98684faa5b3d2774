package httpx

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/unpack"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// maxCoded is the number of bytes of an encoded body that is decoded at its end. Longer bodies are not checked, except streams.
const maxCoded = classify.MaxBody

// A coded follows an encoded body. It finds what the caller's client would find: a body that is cut or damaged inside its coding
// although its length is right, and an error in a stream.
type coded struct {
	coding string
	kept   []byte         // of a body that is decoded at its end
	in     *io.PipeWriter // of a stream, which is decoded as it arrives; otherwise nil
	result chan error     // of the decoded stream
}

// newCoded returns a coded for a complete response, or nil if it has no known coding or is a stored document. errors looks for
// errors in the decoded stream; it is nil if the body is not a stream.
func newCoded(resp *http.Response) (c *coded, errors *classify.Stream) {
	coding := strings.ToLower(strings.TrimSpace(resp.Header.Get("Content-Encoding")))
	switch coding {
	case "gzip", "x-gzip", "deflate", "br", "zstd":
	default:
		return nil, nil
	}
	h := resp.Header.Clone()
	h.Del("Content-Encoding")
	if errors = classify.NewStream(h); errors != nil {
		c = &coded{coding: coding, result: make(chan error, 1)}
		var out *io.PipeReader
		out, c.in = io.Pipe()
		go c.decode(out, errors.Feed)
		return c, errors
	}
	if resp.StatusCode != http.StatusOK || resp.ContentLength > maxCoded || classify.Stored(h) {
		return nil, nil
	}
	return &coded{coding: coding}, nil
}

// decode decodes a stream. It reads the rest after an error, so that the body never waits.
func (c *coded) decode(out *io.PipeReader, feed func([]byte)) {
	err := unpack.Copy(c.coding, out, feed)
	_, _ = io.Copy(io.Discard, out)
	c.result <- err
}

func (c *coded) write(b []byte) {
	switch {
	case c.in != nil:
		_, _ = c.in.Write(b)
	case len(c.kept)+len(b) <= maxCoded:
		c.kept = append(c.kept, b...)
	default:
		c.coding = "" // too long
	}
}

// end reports whether the body is broken. whole means that the body has arrived completely.
func (c *coded) end(whole bool) bool {
	if c.in != nil {
		_ = c.in.Close()
		return <-c.result != nil && whole
	}
	return whole && unpack.Copy(c.coding, bytes.NewReader(c.kept), nil) != nil
}
