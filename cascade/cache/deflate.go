package cache

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"io"
	"sync"
)

// A packer is hundreds of kilobytes, so they are used again.
var packers = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, flate.BestSpeed)
	return w
}}

// deflate packs bytes, with their number before them.
func deflate(b []byte) []byte {
	out := bytes.NewBuffer(binary.AppendUvarint(nil, uint64(len(b))))
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(out)
	_, _ = w.Write(b) // a Buffer takes everything
	_ = w.Close()
	return out.Bytes()
}

var unpackers = sync.Pool{New: func() any { return flate.NewReader(bytes.NewReader(nil)) }}

// perByte is more than deflate can make of a byte: 1032, says RFC 1951's arithmetic.
const perByte = 1040

// inflate unpacks most bytes at most, and allocates no more than what the packed ones
// could be.
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
