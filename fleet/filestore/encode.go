package filestore

import (
	"encoding/binary"
	"hash/crc32"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal appends a checksum to a value, so that damage on the disk is not mistaken for data.
func seal(v []byte) []byte {
	return binary.BigEndian.AppendUint32(v, crc32.Checksum(v, castagnoli))
}

func unseal(v []byte) ([]byte, error) {
	n := len(v) - 4
	if n < 0 || binary.BigEndian.Uint32(v[n:]) != crc32.Checksum(v[:n], castagnoli) {
		return nil, damaged("a value of %d bytes", len(v))
	}
	return v[:n:n], nil
}

// key encodes names unambiguously: different lists of names give different keys.
func key(names ...string) []byte {
	var b []byte
	for _, n := range names {
		b = binary.AppendUvarint(b, uint64(len(n)))
		b = append(b, n...)
	}
	return b
}

// A reader decodes numbers from the beginning of a value. It sets failed if a number is missing.
type reader struct {
	b      []byte
	failed bool
}

func (r *reader) int() int64 {
	n, w := binary.Varint(r.b)
	if w <= 0 {
		r.failed, r.b = true, nil
		return 0
	}
	r.b = r.b[w:]
	return n
}

// later reads a number that older files do not have. It returns 0 for them.
func (r *reader) later() int64 {
	if len(r.b) == 0 {
		return 0
	}
	return r.int()
}

func (r *reader) done() error {
	if r.failed || len(r.b) > 0 {
		return damaged("an empty value")
	}
	return nil
}

func appendInts(b []byte, all ...int64) []byte {
	for _, n := range all {
		b = binary.AppendVarint(b, n)
	}
	return b
}

func encodeCell(c *fleet.Cell) []byte {
	b := appendInts(nil, int64(c.Shape), c.Paused, c.Full)
	switch c.Shape {
	case limit.Bucket:
		b = appendInts(b, c.Fill.At, c.Fill.Weight, c.Unit, c.Drain, 0, c.Since, c.Hold, c.HeldAt)
		b = appendSlots(b, c.Slots)
	case limit.Calendar:
		b = appendInts(b, c.Start, c.End, c.Last, c.Count, c.Returned)
	case limit.Rolling:
		b = appendSlots(b, c.Slots)
		b = appendInts(b, c.Hold)
	}
	return seal(b)
}

func appendSlots(b []byte, slots []fleet.Slot) []byte {
	b = appendInts(b, int64(len(slots)))
	for _, s := range slots {
		b = appendInts(b, s.Number, s.Count, s.Grain)
	}
	return b
}

// slots decodes n slots that appendSlots wrote.
func (r *reader) slots(n int64) (all []fleet.Slot) {
	for range min(n, int64(len(r.b))) {
		all = append(all, fleet.Slot{Number: r.int(), Count: r.int(), Grain: r.int()})
	}
	return all
}

func decodeCell(v []byte) (*fleet.Cell, error) {
	v, err := unseal(v)
	if err != nil {
		return nil, err
	}
	r := &reader{b: v}
	c := &fleet.Cell{Shape: limit.Shape(r.int()), Paused: r.int(), Full: r.int()}
	switch c.Shape {
	case limit.Bucket:
		c.Fill.At, c.Fill.Weight = r.int(), r.int()
		c.Unit, c.Drain, _, c.Since = r.int(), r.int(), r.int(), r.int()
		c.Hold, c.HeldAt = r.later(), r.later()
		c.Slots = r.slots(r.later())
	case limit.Calendar:
		c.Start, c.End, c.Last, c.Count, c.Returned = r.int(), r.int(), r.int(), r.int(), r.later()
	case limit.Rolling:
		c.Slots = r.slots(r.int())
		for _, s := range c.Slots {
			c.Count += s.Count
		}
		c.Hold = r.later()
	}
	return c, r.done()
}

// An answer is the latest answer of a lane, kept for repeats.
type answer struct {
	id      uint64
	at      int64
	granted int64
	grants  []fleet.Grant
}

func encodeAnswer(a *answer) []byte {
	b := appendInts(nil, int64(a.id), a.at, a.granted, int64(len(a.grants)))
	for _, g := range a.grants {
		b = appendInts(b, g.Extra, g.Left, int64(g.Wait), int64(g.Reset), int64(g.Paused), g.Back)
	}
	return seal(b)
}

func decodeAnswer(v []byte) (*answer, error) {
	v, err := unseal(v)
	if err != nil {
		return nil, err
	}
	r := &reader{b: v}
	a := &answer{id: uint64(r.int()), at: r.int(), granted: r.int()}
	for range min(r.int(), int64(len(v))) {
		a.grants = append(a.grants, fleet.Grant{
			Extra: r.int(), Left: r.int(), Wait: time.Duration(r.int()), Reset: time.Duration(r.int()), Paused: time.Duration(r.int()), Back: r.int(),
		})
	}
	return a, r.done()
}

// A kept is a stored record. The name of the record is its key.
type kept struct {
	version int64
	until   int64
	value   []byte
}

func encodeRecord(k *kept) []byte {
	return seal(append(appendInts(nil, k.version, k.until), k.value...))
}

func decodeRecord(v []byte) (*kept, error) {
	v, err := unseal(v)
	if err != nil {
		return nil, err
	}
	r := &reader{b: v}
	k := &kept{version: r.int(), until: r.int()}
	if r.failed {
		return nil, damaged("an empty record")
	}
	k.value = append([]byte(nil), r.b...)
	return k, nil
}
