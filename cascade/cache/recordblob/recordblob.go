// Package recordblob stores the answers of a cache as records in the store of the limits: Redis, DynamoDB or a file.
//
// There is a fixed number of places. Each key maps to one of them, and a later key overwrites the place's value. A Cache
// recognizes its own values by their checksum. The answers in the store therefore never exceed Options.Places times
// Options.Most bytes, and do not displace the limits in the same store. The limits must not be evicted, so the server
// must be configured without eviction.
//
// A read is one call of the store. A write is one call if the place is empty, and otherwise two. In DynamoDB, a read
// costs one read unit per 4 KB, and a write one write unit per KB. In a file, each write waits for the disk, together
// with the writes of the limits.
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

// A Store has the methods of fleet.Store that are used here. It must be safe for concurrent use.
type Store interface {
	Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error)
	Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error)
}

var _ Store = fleet.Store(nil)

// Options configures the size. The zero Options allows 256 MiB. Answers of the usual few KB need only a small part of
// that.
type Options struct {
	Places int // 0 means 4096
	Most   int // maximum bytes of a value; 0 means 64 KiB; DynamoDB allows 390 KiB, a file 1 MiB

	// Group is the prefix of the names of the record groups, such as "cache/7". Empty means "cache". The slash
	// distinguishes them from upstreams.
	Group string
}

// A Blobs is a cache.Blobs in a Store. It is safe for concurrent use.
type Blobs struct {
	s Store
	o Options
}

var (
	_ cache.Blobs  = (*Blobs)(nil)
	_ cache.Locker = (*Blobs)(nil)
)

// New returns a Blobs that uses a store. The caller still owns the store.
func New(s Store, o Options) *Blobs {
	o.Places = cmp.Or(max(o.Places, 0), 4096)
	o.Most = cmp.Or(max(o.Most, 0), 64<<10)
	o.Group = cmp.Or(o.Group, "cache")
	return &Blobs{s: s, o: o}
}

// groups is the number of groups for the records. A Redis cluster keeps each group on one node.
const groups = 64

func (b *Blobs) place(key []byte) (group, name string) {
	var head [8]byte
	copy(head[:], key)
	n := binary.BigEndian.Uint64(head[:]) % uint64(b.o.Places)
	return b.o.Group + "/" + strconv.FormatUint(n%groups, 10), strconv.FormatUint(n, 10)
}

// Most implements cache.Blobs.
func (b *Blobs) Most() int { return b.o.Most }

// Get implements cache.Blobs. It may return another key's value.
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

// Put implements cache.Blobs. After concurrent writes to a place, one of the values remains.
func (b *Blobs) Put(ctx context.Context, key, value []byte, keep time.Duration) error {
	group, name := b.place(key)
	r := fleet.Record{Name: name, Value: value, Keep: keep}
	for range 2 { // first for an empty place, then replacing the current value
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

// Lock implements cache.Locker.
func (b *Blobs) Lock(ctx context.Context, key []byte, keep time.Duration) (bool, error) {
	group, _ := b.place(key)
	_, ok, err := b.s.Swap(ctx, group, fleet.Record{Name: "lock-" + hex.EncodeToString(key[:min(16, len(key))]), Value: []byte{1}, Keep: keep})
	if err != nil {
		return false, fmt.Errorf("lock an answer: %w", err)
	}
	return ok, nil
}
