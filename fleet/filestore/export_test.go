package filestore

import (
	"time"

	bolt "go.etcd.io/bbolt"
)

// OpenAt opens a file by another clock than the machine's.
func OpenAt(path string, o Options, now func() time.Time) (*Store, error) { return open(path, o, now) }

// Entries is how many entries the file has.
func (s *Store) Entries() (n int) {
	_ = s.db.View(func(b *bolt.Tx) error {
		for _, name := range buckets[1:] {
			_ = b.Bucket(name).ForEach(func(_, _ []byte) error { n++; return nil })
		}
		return nil
	})
	return n
}

// KeepAll stops the store from removing what is of no more use. What is left of a
// limit that has become slower depends on whether the store has looked at it since.
func (s *Store) KeepAll() { s.keepAll = true }
