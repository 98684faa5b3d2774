// Package unpack decodes HTTP content codings.
package unpack

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Bytes decodes at most most bytes of a body in br or zstd. It returns the decoded part of a truncated body, and nil for an unknown coding.
// It is safe for concurrent use.
func Bytes(coding string, packed []byte, most int) []byte {
	switch coding {
	case "br":
		r, _ := brotlis.Get().(*brotli.Reader)
		if r == nil {
			r = new(brotli.Reader)
		}
		defer brotlis.Put(r)
		if r.Reset(bytes.NewReader(packed)) != nil {
			return nil
		}
		return beginning(r, most)
	case "zstd":
		r, _ := zstds.Get().(*zstd.Decoder)
		if r == nil {
			var err error
			if r, err = newZstd(); err != nil {
				return nil
			}
		}
		defer zstds.Put(r)
		if r.Reset(bytes.NewReader(packed)) != nil {
			return nil
		}
		return beginning(r, most)
	}
	return nil
}

var brotlis, zstds sync.Pool

// maxWindow is the largest window of zstd as an HTTP content coding (RFC 9659).
const maxWindow = 8 << 20

// newZstd returns a decoder without goroutines, which needs no Close.
func newZstd() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(2*maxWindow))
}

func beginning(r io.Reader, most int) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, int64(most)))
	return out
}

// ErrBroken is the error of a body that is cut or damaged inside its coding.
var ErrBroken = errors.New("the body cannot be decoded")

// Copy decodes a body and passes each piece to feed, at most most bytes. It returns ErrBroken if the body is cut or damaged before,
// and nil if it does not begin like its coding, which is then mislabeled, or if other data follows it. It is safe for concurrent use.
func Copy(coding string, in io.Reader, most int64, feed func([]byte)) error {
	r := NewReader(coding, in, most)
	if r.begin(); r.mislabeled {
		return nil
	}
	piece := make([]byte, 4096)
	for {
		n, err := r.Read(piece)
		if n > 0 {
			feed(piece[:n])
		}
		switch err {
		case nil:
		case io.EOF, ErrTooLong:
			return nil
		default:
			return ErrBroken
		}
	}
}

// ErrTooLong is the error of a Reader that has returned as many bytes as it may.
var ErrTooLong = errors.New("the decoded body is too long")

// Decodes reports whether a Reader decodes the coding, which is in lower case.
func Decodes(coding string) bool {
	switch coding {
	case "gzip", "x-gzip", "deflate", "br", "zstd":
		return true
	}
	return false
}

// A Reader decodes a body as it arrives. It is not safe for concurrent use.
type Reader struct {
	coding     string
	in         *bufio.Reader
	from       io.Reader // returns the decoded bytes; nil before the first Read
	left       int64     // bytes that it may still return
	mislabeled bool
}

// NewReader returns a Reader that returns at most most bytes. It reads nothing yet.
func NewReader(coding string, in io.Reader, most int64) *Reader {
	return &Reader{coding: coding, in: bufio.NewReader(in), left: most}
}

// Read implements io.Reader. It returns a body unchanged that does not begin like its coding, which is then mislabeled. It ignores
// other data after the encoded body. A body that is cut or damaged ends with an error.
func (r *Reader) Read(p []byte) (int, error) {
	r.begin()
	if r.left <= 0 {
		return 0, ErrTooLong
	}
	n, err := r.from.Read(p[:min(int64(len(p)), r.left)])
	r.left -= int64(n)
	if errors.Is(err, zstd.ErrMagicMismatch) { // other data follows
		err = io.EOF
	}
	return n, err
}

// begin chooses how the body is decoded, before its first byte is read.
func (r *Reader) begin() {
	if r.from != nil {
		return
	}
	first, _ := r.in.Peek(16)
	r.mislabeled = isText(first)
	switch {
	case r.mislabeled:
	case r.coding == "gzip", r.coding == "x-gzip":
		r.mislabeled = !isGzip(first)
		r.from = &members{in: r.in}
	case r.coding == "deflate": // with or without a zlib header
		r.from = flate.NewReader(r.in)
		if first[0]&15 == 8 && len(first) > 1 && (int(first[0])<<8+int(first[1]))%31 == 0 {
			if z, err := zlib.NewReader(r.in); err == nil {
				r.from = z
			}
		}
	case r.coding == "br":
		r.from = brotli.NewReader(r.in)
	case r.coding == "zstd":
		z, err := newZstd()
		r.mislabeled = !isZstd(first) || err != nil || z.Reset(r.in) != nil
		r.from = z
	default:
		r.mislabeled = true
	}
	if r.mislabeled {
		r.from = r.in
	}
}

func isGzip(first []byte) bool { return len(first) > 1 && first[0] == 0x1f && first[1] == 0x8b }

// isText reports whether the beginning of a body is ASCII text, as no encoded body of that length is.
func isText(first []byte) bool {
	for _, c := range first {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// isZstd reports whether a body begins with a frame of zstd, or with one to skip.
func isZstd(first []byte) bool {
	return bytes.HasPrefix(first, []byte("\x28\xb5\x2f\xfd")) || len(first) > 3 && first[0]>>4 == 5 && string(first[1:4]) == "\x2a\x4d\x18"
}

// A members decodes the members of a gzip body, which end before other data.
type members struct {
	in *bufio.Reader
	z  *gzip.Reader // nil between members
}

func (m *members) Read(p []byte) (n int, err error) {
	for {
		if m.z == nil {
			if magic, err := m.in.Peek(2); !isGzip(magic) {
				if err == nil {
					err = io.EOF
				}
				return 0, err
			}
			if m.z, err = gzip.NewReader(m.in); err != nil {
				return 0, err
			}
			m.z.Multistream(false)
		}
		if n, err = m.z.Read(p); err != io.EOF {
			return n, err
		}
		if m.z = nil; n > 0 {
			return n, nil
		}
	}
}
