package filestore

import (
	"context"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// mostValue is the maximum size of a record's value in bytes.
const mostValue = 1 << 20

// Load implements fleet.Store.
func (s *Store) Load(ctx context.Context, group string, names []string) (all []fleet.Record, now time.Time, err error) {
	if err := s.usable(ctx); err != nil {
		return nil, time.Time{}, err
	}
	now = s.clock.now()
	all = make([]fleet.Record, 0, len(names))
	if len(names) == 0 {
		return all, now, nil
	}
	err = guarded(func() error {
		return s.db.View(func(b *bolt.Tx) error {
			records := b.Bucket(bucketRecords)
			for _, name := range names {
				r, err := load(records, now, group, name)
				if err != nil {
					return err
				}
				all = append(all, r)
			}
			return nil
		})
	})
	if err != nil {
		return nil, time.Time{}, s.wrap(err)
	}
	return all, now, nil
}

// load returns a record, with version 0 if it is missing or expired.
func load(records *bolt.Bucket, now time.Time, group, name string) (fleet.Record, error) {
	none := fleet.Record{Name: name}
	v := records.Get(key(group, name))
	if v == nil {
		return none, nil
	}
	k, err := decodeRecord(v)
	if err != nil || now.UnixMicro() > k.until {
		return none, err
	}
	return fleet.Record{Name: name, Version: k.version, Value: k.value, Keep: time.Duration(k.until-now.UnixMicro()) * time.Microsecond}, nil
}

// Swap implements fleet.Store.
func (s *Store) Swap(ctx context.Context, group string, r fleet.Record) (now fleet.Record, ok bool, err error) {
	if err := checkNames(group, r.Name); err != nil {
		return fleet.Record{}, false, err
	}
	if len(r.Value) > mostValue {
		return fleet.Record{}, false, fmt.Errorf("record %.100q of %d bytes: %d at most", r.Name, len(r.Value), mostValue)
	}
	var out struct {
		fleet.Record
		ok bool
	}
	r.Value = append([]byte(nil), r.Value...)
	err = s.do(ctx, func(t *txn) (err error) {
		out.Record, out.ok, err = t.swap(group, r)
		return err
	})
	if err != nil {
		return fleet.Record{}, false, err
	}
	return out.Record, out.ok, nil
}

func (t *txn) swap(group string, r fleet.Record) (fleet.Record, bool, error) {
	old, err := load(t.records.Bucket, t.now, group, r.Name)
	if err != nil || old.Version != r.Version {
		return old, false, err
	}
	highest, err := number(t.meta, keyVersion)
	if err != nil {
		return old, false, err
	}
	r.Version = fleet.NextVersion(max(highest, r.Version), t.now)
	t.put(t.records, key(group, r.Name), encodeRecord(&kept{r.Version, until(t.now, r.Keep), r.Value}))
	if t.err == nil {
		t.err = setNumber(t.meta, keyVersion, r.Version)
	}
	return r, true, nil
}
