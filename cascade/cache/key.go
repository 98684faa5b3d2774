package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// A Key says to which question an answer belongs. Two keys are the same if all four parts
// are.
type Key struct {
	Tenant string   // whose answer it is; nobody else's key is equal
	Route  string   // what is asked of whom
	Model  string   // who answers
	Hash   [32]byte // of the question, in a canonical form
}

// Append appends the key as bytes. Each part has its length before it, so different keys
// are different bytes, wherever a part ends.
func (k Key) Append(b []byte) []byte {
	for _, part := range [...]string{k.Tenant, k.Route, k.Model} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return append(b, k.Hash[:]...)
}

// Sum is the SHA-256 of the key's bytes, by which stores know it. It tells nobody the
// tenant's name.
func (k Key) Sum() [32]byte {
	var room [256]byte
	return sha256.Sum256(k.Append(room[:0]))
}

// clone keeps nothing alive that the parts were cut from.
func (k Key) clone() Key {
	k.Tenant, k.Route, k.Model = strings.Clone(k.Tenant), strings.Clone(k.Route), strings.Clone(k.Model)
	return k
}

func (k *Key) size() int { return len(k.Tenant) + len(k.Route) + len(k.Model) + len(k.Hash) }
