package filestore

import (
	"context"
	"encoding/binary"
	"maps"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// rosters are the members that share the limits of each group. They are only in memory, because they end with this
// process: all belong to it or connect to it. The file stores only how far the supply of a group is behind the
// clock, because the supply drains the buckets.
type rosters struct {
	groups  map[string]*fleet.Members
	written map[string]int64 // the lags in the file
	writing map[string]int64 // the lags in the file after the present write
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

// members returns the members of a group.
func (f *rosters) members(group string, now int64) *fleet.Members {
	m := f.groups[group]
	if m == nil {
		m = fleet.NewMembers(now, true)
		m.Lag = f.written[group]
		f.groups[group] = m
	}
	return m
}

// finish writes the lags that changed.
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

// wrote records that the write succeeded. A write that a full disk refused is repeated.
func (f *rosters) wrote() { maps.Copy(f.written, f.writing) }

// dropLags deletes all lags, so that the supply of all groups restarts at the present time.
func dropLags(b *bolt.Tx) error {
	f, err := openFleet(b)
	for group := range f.written {
		if err == nil {
			err = b.Bucket(bucketMeta).Delete(append(lagPrefix[:len(lagPrefix):len(lagPrefix)], group...))
		}
	}
	return err
}

// supply returns the supply of a group at the present time.
func (t *txn) supply(group string) *fleet.Supply {
	return t.fleet.members(group, t.now.UnixMicro()).Supply(t.now.UnixMicro())
}

// groupOf returns the group of an entry, given its key.
func groupOf(key []byte) string {
	n, w := binary.Uvarint(key)
	if w <= 0 || n > uint64(len(key)-w) {
		return ""
	}
	return string(key[w : w+int(n)])
}

// Beat implements fleet.Store. It waits for the present write, so that a stalled disk is noticed, but it writes
// nothing.
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
