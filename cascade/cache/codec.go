package cache

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"
)

// An entry in a store has this format:
//
//	a byte     the version of this format
//	a byte     the encoding of the rest
//	16 bytes   of the SHA-256 of the key's sum, the encoding, and the rest
//	the rest   the entry; if compressed, its original length and the compressed entry
//
// Truncated or changed values, and values for another key or of another version, are thus detected.
const (
	version  = 1
	headSize = 2 + sumSize
	sumSize  = 16

	plain    = 0
	deflated = 1

	worthPacking = 1 << 10 // compressing less gains almost nothing
)

var errDamaged = errors.New("the value is damaged, or belongs to another cache or key")

// encode returns the stored form of an entry for the key with that sum.
func encode(sum [32]byte, e *Entry) []byte {
	rest, packing := appendEntry(nil, e), byte(plain)
	if len(rest) > worthPacking {
		if p := deflate(rest); len(p) < len(rest) {
			rest, packing = p, deflated
		}
	}
	b := make([]byte, 0, headSize+len(rest))
	b = append(b, version, packing)
	b = append(b, checksum(sum, packing, rest)...)
	return append(b, rest...)
}

// decode reads the output of encode if the entry has at most most bytes.
func decode(sum [32]byte, b []byte, most int) (Entry, error) {
	if len(b) < headSize || len(b)-headSize > most || b[0] != version || !bytes.Equal(b[2:headSize], checksum(sum, b[1], b[headSize:])) {
		return Entry{}, errDamaged
	}
	rest := b[headSize:]
	switch b[1] {
	case plain:
	case deflated:
		var err error
		if rest, err = inflate(rest, most); err != nil {
			return Entry{}, err
		}
	default:
		return Entry{}, errDamaged
	}
	return readEntry(rest)
}

func checksum(sum [32]byte, packing byte, rest []byte) []byte {
	h := sha256.New()
	h.Write(sum[:])
	h.Write([]byte{packing})
	h.Write(rest)
	return h.Sum(nil)[:sumSize]
}

func appendEntry(b []byte, e *Entry) []byte {
	b = binary.AppendVarint(b, int64(e.Status))
	b = binary.AppendVarint(b, e.Stored.UnixNano())
	b = binary.AppendVarint(b, int64(e.TTL))
	b = binary.AppendUvarint(b, uint64(len(e.Header)))
	for _, name := range slices.Sorted(maps.Keys(e.Header)) {
		b = appendText(b, name)
		b = binary.AppendUvarint(b, uint64(len(e.Header[name])))
		for _, v := range e.Header[name] {
			b = appendText(b, v)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(e.Meta)))
	for _, name := range slices.Sorted(maps.Keys(e.Meta)) {
		b = appendText(appendText(b, name), e.Meta[name])
	}
	return append(b, e.Body...)
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// readEntry returns an entry whose body shares memory with b.
func readEntry(b []byte) (e Entry, err error) {
	r := reader{b: b}
	e.Status = int(r.int())
	e.Stored = time.Unix(0, r.int())
	e.TTL = time.Duration(r.int())
	for n := r.count(); n > 0 && !r.bad; n-- {
		r.header(&e)
	}
	for n := r.count(); n > 0 && !r.bad; n-- {
		if e.Meta == nil {
			e.Meta = make(map[string]string)
		}
		name := r.text()
		e.Meta[name] = r.text()
	}
	if r.bad {
		return Entry{}, errDamaged
	}
	e.Body = r.b
	return e, nil
}

type reader struct {
	b   []byte
	bad bool
}

func (r *reader) header(e *Entry) {
	if e.Header == nil {
		e.Header = make(map[string][]string)
	}
	name := r.text()
	var values []string
	for n := r.count(); n > 0 && !r.bad; n-- {
		values = append(values, r.text())
	}
	e.Header[name] = values
}

func (r *reader) int() int64 {
	v, n := binary.Varint(r.b)
	if !r.take(n) {
		return 0
	}
	return v
}

// count reads the number of items that need at least one byte each.
func (r *reader) count() uint64 {
	v, n := binary.Uvarint(r.b)
	if !r.take(n) || v > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return v
}

// take skips n bytes, and reports whether that was possible.
func (r *reader) take(n int) bool {
	if n <= 0 || r.bad {
		r.bad = true
		return false
	}
	r.b = r.b[n:]
	return true
}

func (r *reader) text() string {
	n := r.count()
	if r.bad {
		return ""
	}
	s := string(r.b[:n])
	r.b = r.b[n:]
	return s
}
