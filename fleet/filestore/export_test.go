package filestore

import (
	"time"

	bolt "go.etcd.io/bbolt"
)

// OpenAt opens a file with the clock now.
func OpenAt(path string, o Options, now func() time.Time) (*Store, error) { return open(path, o, now) }

// Entries returns the number of entries in the file.
func (s *Store) Entries() (n int) {
	_ = s.db.View(func(b *bolt.Tx) error {
		for _, name := range buckets[1:] {
			_ = b.Bucket(name).ForEach(func(_, _ []byte) error { n++; return nil })
		}
		return nil
	})
	return n
}

// KeepAll makes the store keep useless entries. Otherwise the remaining units of a limit that became slower depend
// on whether the store has checked it since.
func (s *Store) KeepAll() { s.keepAll = true }
