// Package unpack decodes HTTP content codings that the standard library lacks: br and zstd.
package unpack

import (
	"bytes"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// Bytes decodes at most most bytes of a body. It returns the decoded part of a truncated body, and nil for an unknown coding.
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
