// Package unpack undoes the codings of HTTP bodies that the standard library does not know: br and zstd.
package unpack

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Bytes returns what is packed in a body, at most so many bytes of it. A body that is cut short gives what comes before the cut.
// It returns nil for a coding that it does not know. It is safe for concurrent use.
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

// maxWindow is the most that a decoder must keep for zstd as a coding of HTTP (RFC 9659).
const maxWindow = 8 << 20

// newZstd makes a decoder without goroutines, which need not be closed.
func newZstd() (*zstd.Decoder, error) {
	return zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderMaxMemory(2*maxWindow))
}

func beginning(r io.Reader, most int) []byte {
	out, _ := io.ReadAll(io.LimitReader(r, int64(most)))
	return out
}
