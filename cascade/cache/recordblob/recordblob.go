// Package recordblob keeps the answers of a cache as records of the store that has the
// limits: in Redis, DynamoDB or a file, whichever it is.
//
// There is a fixed number of places, and a key has one of them. A later key takes it,
// whatever stood there; a Cache knows its own values by their checksum. So the answers in the
// store can never be more than Options.Places times Options.Most bytes, and cannot crowd out
// the limits beside them: those must not be evicted, so a server that holds them has to be set
// up such that it evicts nothing.
//
// A read is one call of the store. A write is one where the place is free, and two where it is
// not. In DynamoDB a read costs a read unit for each 4 KB and a write a write unit for each
// KB. In a file, each write waits for the disk, together with those of the limits.
package recordblob

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/fleet"
)

// A Store is as much of fleet.Store as is needed here.
type Store interface {
	Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error)
	Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error)
}

var _ Store = fleet.Store(nil)

// Options say how much room there is. The zero Options have 256 MiB, which answers of
// the usual few KB fill by a small part.
type Options struct {
	Places int // 0 means 4096
	Most   int // bytes of a value; 0 means 64 KiB; DynamoDB has room for 390 KiB, a file for 1 MiB

	// Group begins the names of the groups in which the records stand, "cache/7" and so
	// on; empty means "cache". The slash keeps them apart from upstreams.
	Group string
}

// A Blobs is cache.Blobs in a Store. It is safe for concurrent use.
type Blobs struct {
	s Store
	o Options
}

var (
	_ cache.Blobs  = (*Blobs)(nil)
	_ cache.Locker = (*Blobs)(nil)
)

// New makes Blobs of a store, which remains the caller's.
func New(s Store, o Options) *Blobs {
	o.Places = cmp.Or(max(o.Places, 0), 4096)
	o.Most = cmp.Or(max(o.Most, 0), 64<<10)
	o.Group = cmp.Or(o.Group, "cache")
	return &Blobs{s: s, o: o}
}

// groups is over how many groups the records are spread, as a cluster of Redis keeps each
// group on one node.
const groups = 64

// place is where a key's value stands.
func (b *Blobs) place(key []byte) (group, name string) {
	var head [8]byte
	copy(head[:], key)
	n := binary.BigEndian.Uint64(head[:]) % uint64(b.o.Places)
	return b.o.Group + "/" + strconv.FormatUint(n%groups, 10), strconv.FormatUint(n, 10)
}

// Most is cache.Blobs's.
func (b *Blobs) Most() int { return b.o.Most }

// Get is cache.Blobs's. What it returns may be another key's value.
func (b *Blobs) Get(ctx context.Context, key []byte) ([]byte, error) {
	group, name := b.place(key)
	all, _, err := b.s.Load(ctx, group, []string{name})
	if err != nil {
		return nil, fmt.Errorf("read an answer: %w", err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("read an answer: the store returned %d records, want 1", len(all))
	}
	return all[0].Value, nil
}

// Put is cache.Blobs's. If two write to one place at once, one of them is kept.
func (b *Blobs) Put(ctx context.Context, key, value []byte, keep time.Duration) error {
	group, name := b.place(key)
	r := fleet.Record{Name: name, Value: value, Keep: keep}
	for range 2 { // where there is nothing, or in place of what there is
		now, ok, err := b.s.Swap(ctx, group, r)
		if err != nil {
			return fmt.Errorf("write an answer: %w", err)
		}
		if ok {
			return nil
		}
		r.Version = now.Version
	}
	return nil
}

// Lock is cache.Locker's.
func (b *Blobs) Lock(ctx context.Context, key []byte, keep time.Duration) (bool, error) {
	group, _ := b.place(key)
	_, ok, err := b.s.Swap(ctx, group, fleet.Record{Name: "lock-" + hex.EncodeToString(key[:min(16, len(key))]), Value: []byte{1}, Keep: keep})
	if err != nil {
		return false, fmt.Errorf("lock an answer: %w", err)
	}
	return ok, nil
}
