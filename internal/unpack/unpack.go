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
	left := most
	b := bufio.NewReader(in)
	if first, _ := b.Peek(16); isText(first) {
		return nil
	}
	switch coding {
	case "gzip", "x-gzip":
		return copyGzip(b, &left, feed)
	case "deflate": // with or without a zlib header
		if head, _ := b.Peek(2); len(head) == 2 && head[0]&15 == 8 && (int(head[0])<<8+int(head[1]))%31 == 0 {
			z, err := zlib.NewReader(b)
			if err != nil {
				return nil
			}
			return drain(z, &left, feed)
		}
		return drain(flate.NewReader(b), &left, feed)
	case "br":
		return drain(brotli.NewReader(b), &left, feed)
	case "zstd":
		r, err := newZstd()
		if err != nil || r.Reset(b) != nil {
			return nil
		}
		return drain(r, &left, feed)
	}
	return nil
}

// isText reports whether the beginning of a body is ASCII text, as no encoded body of that length is.
func isText(first []byte) bool {
	for _, c := range first {
		if c >= 0x7f || c < ' ' && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}

// copyGzip decodes the members of a gzip body.
func copyGzip(b *bufio.Reader, left *int64, feed func([]byte)) error {
	for *left > 0 {
		if magic, _ := b.Peek(2); len(magic) < 2 || magic[0] != 0x1f || magic[1] != 0x8b {
			return nil
		}
		z, err := gzip.NewReader(b)
		if err != nil {
			return ErrBroken
		}
		z.Multistream(false)
		if err := drain(z, left, feed); err != nil {
			return err
		}
	}
	return nil
}

func drain(r io.Reader, left *int64, feed func([]byte)) error {
	piece := make([]byte, 4096)
	for *left > 0 {
		n, err := r.Read(piece[:min(*left, int64(len(piece)))])
		if *left -= int64(n); n > 0 {
			feed(piece[:n])
		}
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, zstd.ErrMagicMismatch): // other data follows
			return nil
		case err != nil:
			return ErrBroken
		}
	}
	return nil
}
