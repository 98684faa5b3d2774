package classify

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxCodings is how often a body may be packed.
const maxCodings = 3

// codings returns how a body is packed, the first coding first, and whether all of them can be undone.
func codings(h http.Header) (of [maxCodings]string, n int, ok bool) {
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "", "identity":
			case "gzip", "x-gzip", "deflate", "br", "zstd":
				if n == maxCodings {
					return of, n, false
				}
				of[n] = coding
				n++
			default:
				return of, n, false
			}
		}
	}
	return of, n, true
}

// readable reports whether the body's coding is one that can be undone.
func readable(h http.Header) bool {
	_, _, ok := codings(h)
	return ok
}

// plain returns at most MaxBody bytes of the body, unpacked. Proxies see bodies
// packed that they may not ask to have unpacked, since Accept-Encoding is signed.
func plain(r *Response) []byte {
	body := r.Body[:min(len(r.Body), MaxBody)]
	of, n, ok := codings(r.Header)
	if !ok {
		return nil
	}
	for i := n - 1; i >= 0 && len(body) > 0; i-- {
		body = unpack(r, of[i], body)
	}
	return body
}

// unpack undoes one coding. Cut short is as good as complete. What is not packed as it says is returned as it is.
func unpack(r *Response, coding string, body []byte) []byte {
	switch coding {
	case "gzip", "x-gzip":
		z, _ := gzips.Get().(*gzip.Reader)
		if z == nil {
			z = new(gzip.Reader)
		}
		defer gzips.Put(z)
		if z.Reset(bytes.NewReader(body)) != nil {
			return body
		}
		return beginning(z)
	case "deflate": // with the frame of zlib, as the RFC has it, or without, as some servers do
		if z, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
			return beginning(z)
		}
		if out := beginning(flate.NewReader(bytes.NewReader(body))); isMarkup(out) || !isMarkup(body) {
			return out
		}
		return body
	}
	if r.Unpack == nil {
		return nil
	}
	if out := r.Unpack(coding, body, MaxBody); len(out) > 0 {
		return out
	}
	return body
}

// isMarkup reports whether a text begins as JSON, XML or HTML does.
func isMarkup(text []byte) bool {
	c := leader(text)
	return c == '{' || c == '[' || c == '<'
}

var gzips sync.Pool // of *gzip.Reader

func beginning(in io.Reader) []byte {
	out, _ := io.ReadAll(io.LimitReader(in, MaxBody))
	return out
}
