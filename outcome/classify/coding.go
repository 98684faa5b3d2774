package classify

import (
	"bytes"
	"cmp"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"encoding/binary"
	"io"
	"net/http"
	"strings"
	"sync"
	"unicode/utf16"
)

const maxCodings = 3

// codings returns the codings of a body, in the order in which they were applied. Unknown words, such as a charset, are ignored:
// the body shows whether it can be read.
func codings(h http.Header) (of [maxCodings]string, n int) {
	for _, line := range h["Content-Encoding"] {
		for coding := range strings.SplitSeq(line, ",") {
			switch coding = strings.ToLower(strings.TrimSpace(coding)); coding {
			case "gzip", "x-gzip", "deflate", "br", "zstd":
				if n < maxCodings {
					of[n] = coding
					n++
				}
			}
		}
	}
	return of, n
}

// plain returns at most MaxBody decoded bytes of the body. Proxies receive encoded bodies and cannot prevent that, because
// Accept-Encoding is signed. The first bytes of an encoded body take precedence over its header, which may be wrong or missing.
func plain(r *Response) []byte {
	body := r.Body[:min(len(r.Body), MaxBody)]
	of, n := codings(r.Header)
	for i := n - 1; i >= 0 && len(body) > 0; i-- {
		body = unpack(r, cmp.Or(codingOf(body), of[i]), body)
	}
	for range maxCodings {
		coding := codingOf(body)
		if coding == "" {
			break
		}
		body = unpack(r, coding, body)
	}
	return utf8Of(body)
}

// codingOf returns the coding that a body's first bytes indicate, or "".
func codingOf(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte("\x1f\x8b\x08")):
		return "gzip"
	case bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	}
	return ""
}

// utf8Of decodes UTF-16 with a byte order mark.
func utf8Of(body []byte) []byte {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(body, []byte("\xff\xfe")):
		order = binary.LittleEndian
	case bytes.HasPrefix(body, []byte("\xfe\xff")):
		order = binary.BigEndian
	default:
		return body
	}
	units := make([]uint16, 0, len(body)/2)
	for body = body[2:]; len(body) > 1; body = body[2:] {
		units = append(units, order.Uint16(body))
	}
	return []byte(string(utf16.Decode(units)))
}

// unpack decodes one coding. A truncated body is decoded up to its end. A body that is not encoded as declared is returned
// unchanged.
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
	case "deflate": // with a zlib header, as in the RFC, or without, as some servers send it
		if z, err := zlib.NewReader(bytes.NewReader(body)); err == nil {
			return beginning(z)
		}
		if out := beginning(flate.NewReader(bytes.NewReader(body))); isMarkup(out) || !isMarkup(body) {
			return out
		}
		return body
	}
	if r.Unpack == nil {
		if isMarkup(body) { // not encoded
			return body
		}
		return nil
	}
	if out := r.Unpack(coding, body, MaxBody); len(out) > 0 {
		return out
	}
	return body
}

// isMarkup reports whether a text begins like JSON, XML or HTML.
func isMarkup(text []byte) bool {
	c := leader(text)
	return c == '{' || c == '[' || c == '<'
}

var gzips sync.Pool // of *gzip.Reader

func beginning(in io.Reader) []byte {
	out, _ := io.ReadAll(io.LimitReader(in, MaxBody))
	return out
}
