package filestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"github.com/seed1158cd35/weir/internal/private"
)

const (
	defaultWait  = time.Second
	longestClose = 5 * time.Second
)

// openFile verifies the file and opens it. bbolt would trust the contents of a damaged file.
func openFile(path string, o Options) (*bolt.DB, error) {
	info, err := os.Stat(path)
	fresh := errors.Is(err, fs.ErrNotExist) || err == nil && info.Mode().IsRegular() && info.Size() == 0
	switch {
	case fresh:
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, errors.New("it is not a regular file: use another path for the store")
	default:
		if err := examine(path, o); err != nil {
			return nil, err
		}
	}
	db, err := boltOpen(path, o, false)
	if err == nil && fresh && !o.NoSync {
		err = syncDir(filepath.Dir(path))
	}
	return db, err
}

// examine verifies a file while no other process can write it.
func examine(path string, o Options) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := metaOf(f); err != nil {
		return err
	}
	db, err := boltOpen(path, o, true) // it holds the lock, and has read only the meta pages
	if err != nil {
		return err
	}
	return errors.Join(verify(f), db.Close())
}

func boltOpen(path string, o Options, readOnly bool) (db *bolt.DB, err error) {
	if o.Wait <= 0 {
		o.Wait = defaultWait
	}
	if err := private.Check(path); err != nil {
		return nil, err
	}
	err = guarded(func() error {
		db, err = bolt.Open(path, 0o600, &bolt.Options{
			Timeout: o.Wait, ReadOnly: readOnly, NoSync: o.NoSync, MaxSize: o.MaxSize,
			NoFreelistSync: true, FreelistType: bolt.FreelistMapType, NoStatistics: true,
		})
		return err
	})
	switch {
	case err == nil:
		return db, nil
	case errors.Is(err, berrors.ErrTimeout):
		return nil, ErrHeld
	case isFull(err):
		return nil, fmt.Errorf("%w (%w)", ErrFull, err)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrVersionMismatch), errors.Is(err, berrors.ErrChecksum):
		return nil, damaged("%v", err)
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w: make the directory first", err)
	}
	return nil, err
}

// closeFile closes a file. After a panic, bbolt may hold its locks forever. The file is then released when the
// process ends.
func closeFile(db *bolt.DB) error {
	closed := make(chan error, 1)
	go func() { closed <- guarded(db.Close) }()
	select {
	case err := <-closed:
		return err
	case <-time.After(longestClose):
		return damaged("it cannot be closed before the process ends")
	}
}

// syncDir makes the name of a new file durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return nil // some systems cannot open directories, and do not need it
	}
	defer d.Close()
	_ = d.Sync()
	return nil
}

// The parts of a file and the keys of the meta part.
var (
	bucketMeta    = []byte("weir")
	bucketCells   = []byte("cells")
	bucketLanes   = []byte("lanes")
	bucketRecords = []byte("records")
	buckets       = [][]byte{bucketMeta, bucketCells, bucketLanes, bucketRecords}

	keyFormat  = []byte("format")
	keyClock   = []byte("clock")   // time of the latest write, in microseconds
	keyVersion = []byte("version") // the highest version of any record
)

const formatNow = 1

// format initializes a new file or checks an existing one. It returns the time of the latest write.
func format(b *bolt.Tx) (seen time.Time, err error) {
	meta := b.Bucket(bucketMeta)
	if meta == nil {
		return time.Time{}, fresh(b)
	}
	switch f, err := number(meta, keyFormat); {
	case err != nil:
		return time.Time{}, err
	case f != formatNow:
		return time.Time{}, fmt.Errorf("the file has format %d, and this weir supports format %d: use the version that wrote it, or a newer one", f, formatNow)
	}
	for _, name := range buckets {
		if b.Bucket(name) == nil {
			return time.Time{}, damaged("part %q is missing", name)
		}
	}
	us, err := number(meta, keyClock)
	if us == 0 {
		return time.Time{}, err
	}
	return time.UnixMicro(us).UTC(), err
}

func fresh(b *bolt.Tx) error {
	if name, _ := b.Cursor().First(); name != nil {
		return ErrForeign
	}
	for _, name := range buckets {
		if _, err := b.CreateBucket(name); err != nil {
			return err
		}
	}
	return setNumber(b.Bucket(bucketMeta), keyFormat, formatNow)
}

// number returns 0 if the number was never set.
func number(b *bolt.Bucket, key []byte) (int64, error) {
	v := b.Get(key)
	if v == nil {
		return 0, nil
	}
	v, err := unseal(v)
	if err != nil || len(v) != 8 {
		return 0, damaged("number %q", key)
	}
	return int64(binary.BigEndian.Uint64(v)), nil
}

func setNumber(b *bolt.Bucket, key []byte, n int64) error {
	return b.Put(key, seal(binary.BigEndian.AppendUint64(nil, uint64(n))))
}
