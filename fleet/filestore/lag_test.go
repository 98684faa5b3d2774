package filestore

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
)

// The write after a failed one also writes the lag of the supply behind the clock. Otherwise a store that is opened
// again would drain its buckets too far, by the lag.
func TestALagThatWasNotWrittenIsWrittenAgain(t *testing.T) {
	db, err := bolt.Open(filepath.Join(t.TempDir(), "f"), 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	full := errors.New("full")
	var f rosters
	write := func(result error) error {
		return db.Update(func(b *bolt.Tx) error {
			meta, err := b.CreateBucketIfNotExists(bucketMeta)
			if err == nil && f.groups == nil {
				f, err = openFleet(b)
				m := fleet.NewMembers(time.Hour.Microseconds(), true)
				m.Lag = 5
				f.groups["g"] = m
			}
			return errors.Join(err, f.finish(meta), result)
		})
	}
	if err := write(full); !errors.Is(err, full) {
		t.Fatal(err)
	}
	if err := write(nil); err != nil {
		t.Fatal(err)
	}
	f.wrote()
	if f.written["g"] != 5 {
		t.Errorf("it thinks that the file has a lag of %d", f.written["g"])
	}
	_ = db.View(func(b *bolt.Tx) error {
		if f, err := openFleet(b); err != nil || f.written["g"] != 5 {
			t.Errorf("the file has a lag of %d, want 5: %v", f.written["g"], err)
		}
		return nil
	})
}
