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

// maxCodings is how often a body may be packed.
const maxCodings = 3

// codings returns how a body is packed, the first coding first. Words that name no known coding, such as a charset, are passed
// over: the body shows whether it can be read.
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

// plain returns at most MaxBody bytes of the body, unpacked. Proxies see bodies
// packed that they may not ask to have unpacked, since Accept-Encoding is signed. The first bytes of a packed body are
// believed over its header, which may be wrong or missing.
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

// codingOf returns the coding that a body's first bytes name, or "".
func codingOf(body []byte) string {
	switch {
	case bytes.HasPrefix(body, []byte("\x1f\x8b\x08")):
		return "gzip"
	case bytes.HasPrefix(body, []byte("\x28\xb5\x2f\xfd")):
		return "zstd"
	}
	return ""
}

// utf8Of decodes UTF-16 that begins with its mark.
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
		if isMarkup(body) { // not packed at all
			return body
		}
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
