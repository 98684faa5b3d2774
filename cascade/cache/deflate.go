package cache

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"sync"
)

// packers reuses compressors, because each needs hundreds of kilobytes.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed)
	return w
}}

// deflate compresses bytes and puts their original length before them.
func deflate(b []byte) []byte {
	out := bytes.NewBuffer(binary.AppendUvarint(nil, uint64(len(b))))
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(out)
	_, _ = w.Write(b) // a bytes.Buffer returns no errors
	_ = w.Close()
	return out.Bytes()
}

var unpackers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// perByte exceeds the maximum compression ratio of deflate, which is 1032 according to RFC 1951.
const perByte = 1040

// inflate decompresses to at most most bytes. It allocates no more than the compressed bytes could contain.
func inflate(b []byte, most int) ([]byte, error) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(most) || size > perByte*uint64(len(b)) {
		return nil, errDamaged
	}
	r := unpackers.Get().(io.ReadCloser)
	defer unpackers.Put(r)
	_ = r.(flate.Resetter).Reset(bytes.NewReader(b[n:]), nil)
	out := make([]byte, size)
	if _, err := io.ReadFull(r, out); err != nil {
		return nil, errDamaged
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		return nil, errDamaged
	}
	return out, nil
}
