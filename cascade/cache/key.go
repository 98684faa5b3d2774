package cache

import (
	"crypto/sha256"
	"encoding/binary"
	"strings"
)

// A Key identifies the question of an answer. Two keys are equal if all four parts are.
type Key struct {
	Tenant string   // owner of the answer; keys of different tenants are never equal
	Route  string   // the upstream and the operation
	Model  string   // the model that answers
	Hash   [32]byte // of the question, in a canonical form
}

// Append appends the key as bytes. Each part has a length prefix, so different keys have different bytes.
func (k Key) Append(b []byte) []byte {
	for _, part := range [...]string{k.Tenant, k.Route, k.Model} {
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	return append(b, k.Hash[:]...)
}

// Sum returns the SHA-256 of the key's bytes, which is the key in stores. It does not reveal the tenant's name.
func (k Key) Sum() [32]byte {
	var room [256]byte
	return sha256.Sum256(k.Append(room[:0]))
}

// clone copies the parts, so that they do not keep larger strings in memory.
func (k Key) clone() Key {
	k.Tenant, k.Route, k.Model = strings.Clone(k.Tenant), strings.Clone(k.Route), strings.Clone(k.Model)
	return k
}

func (k *Key) size() int { return len(k.Tenant) + len(k.Route) + len(k.Model) + len(k.Hash) }
