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

// An entry in a store is
//
//	a byte     the version of this format
//	a byte     how the rest is packed
//	16 bytes   of the SHA-256 of the key's sum, that byte, and the rest
//	the rest   of a packed entry, its length before it was packed, and then the entry
//
// so that what was cut, changed, or written for another key, or by a weir that has another
// format, is not taken for an answer.
const (
	version  = 1
	headSize = 2 + sumSize
	sumSize  = 16

	plain    = 0
	deflated = 1

	worthPacking = 1 << 10 // below that it gains nothing to speak of
)

var errDamaged = errors.New("the value is damaged, or belongs to another cache or key")

// encode writes an entry for the key with the sum.
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

// decode reads what encode has written, if the entry has no more than most bytes.
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

// readEntry reads what appendEntry has written. The body is a part of b.
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

// A reader takes values from the front of bytes.
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

// count is a number of things of which each takes a byte at least.
func (r *reader) count() uint64 {
	v, n := binary.Uvarint(r.b)
	if !r.take(n) || v > uint64(len(r.b)) {
		r.bad = true
		return 0
	}
	return v
}

// take reports whether there was something to take.
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
