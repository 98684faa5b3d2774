package filestore

import (
	"context"
	"encoding/binary"
	"maps"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// Who shares a limit is kept in memory: all are of this process, or speak to it, and end
// with it. Only by how much the supply of a group is behind the clock outlives it, as
// buckets are drained by the supply.
type rosters struct {
	groups  map[string]*fleet.Members
	written map[string]int64 // the lags that the file has
	writing map[string]int64 // those that it has once the present write is on disk
}

var lagPrefix = []byte("lag ")

// openFleet reads the lags of a file.
func openFleet(b *bolt.Tx) (rosters, error) {
	f := rosters{make(map[string]*fleet.Members), make(map[string]int64), make(map[string]int64)}
	meta := b.Bucket(bucketMeta)
	c := meta.Cursor()
	for k, _ := c.Seek(lagPrefix); len(k) > len(lagPrefix) && string(k[:len(lagPrefix)]) == string(lagPrefix); k, _ = c.Next() {
		lag, err := number(meta, k)
		if err != nil {
			return f, err
		}
		f.written[string(k[len(lagPrefix):])] = lag
	}
	return f, nil
}

// members are those of a group.
func (f *rosters) members(group string, now int64) *fleet.Members {
	m := f.groups[group]
	if m == nil {
		m = fleet.NewMembers(now, true)
		m.Lag = f.written[group]
		f.groups[group] = m
	}
	return m
}

// finish writes the lags that have grown.
func (f *rosters) finish(meta *bolt.Bucket) error {
	clear(f.writing)
	for group, m := range f.groups {
		lag := m.At - m.Z(m.At)
		if lag == f.written[group] {
			continue
		}
		if err := setNumber(meta, append(lagPrefix[:len(lagPrefix):len(lagPrefix)], group...), lag); err != nil {
			return err
		}
		f.writing[group] = lag
	}
	return nil
}

// wrote notes that the write has succeeded: one that a full disk refused is made again.
func (f *rosters) wrote() { maps.Copy(f.written, f.writing) }

// dropLags lets the supply of all groups begin anew, with the clock.
func dropLags(b *bolt.Tx) error {
	f, err := openFleet(b)
	for group := range f.written {
		if err == nil {
			err = b.Bucket(bucketMeta).Delete(append(lagPrefix[:len(lagPrefix):len(lagPrefix)], group...))
		}
	}
	return err
}

// supply is what can be granted of a group now.
func (t *txn) supply(group string) *fleet.Supply {
	return t.fleet.members(group, t.now.UnixMicro()).Supply(t.now.UnixMicro())
}

// groupOf is the group of an entry.
func groupOf(key []byte) string {
	n, w := binary.Uvarint(key)
	if w <= 0 || n > uint64(len(key)-w) {
		return ""
	}
	return string(key[w : w+int(n)])
}

// Beat is fleet.Store's. It waits for what is being written, so that a disk which stands
// still is noticed, but writes nothing.
func (s *Store) Beat(ctx context.Context, b *fleet.Beat) (a fleet.Standing, err error) {
	if err := b.Check(); err != nil {
		return a, err
	}
	if err := checkNames(b.Group, b.Client); err != nil {
		return a, err
	}
	own := *b
	var out fleet.Standing
	err = s.enqueue(ctx, &op{done: make(chan struct{}), looks: true, run: func(t *txn) error {
		out = t.fleet.members(own.Group, t.now.UnixMicro()).Beat(t.now.UnixMicro(), &own)
		return nil
	}})
	if err != nil {
		return a, err
	}
	return out, nil
}
