package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	lib "modernc.org/sqlite/lib"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// On a full disk, accepted deliveries stay, requests without space get ErrFull, and the store continues once there is
// space.
func TestADiskThatIsFull(t *testing.T) {
	disk := smallDisk(t, 2<<20)
	p := filepath.Join(disk.dir, "d.db")
	s, err := sqlite.Open(t.Context(), p, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	disk.filled.Store(512 << 10)
	var ids []string
	for err == nil {
		r := post("a")
		r.Body = make([]byte, 10<<10)
		var d delivery.Delivery
		if d, _, err = s.Accept(t.Context(), r); err == nil {
			ids = append(ids, d.ID)
		}
	}
	if err := s.Check(t.Context()); !errors.Is(err, delivery.ErrFull) {
		t.Errorf("a check of the store finds %v, want %v", err, delivery.ErrFull)
	}
	if len(ids) < 10 || !errors.Is(err, delivery.ErrFull) || errors.Is(err, delivery.ErrUncertain) {
		t.Errorf("after %d: %v, want %v", len(ids), err, delivery.ErrFull)
	}
	disk.filled.Store(0)
	if err := s.Check(t.Context()); err != nil {
		t.Errorf("with space again, a check of the store finds %v", err)
	}
	ids = append(ids, accept(t, s, post("a")).ID)
	sameCounts(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if s, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, id := range ids {
		if d, err := s.Get(t.Context(), id); err != nil || d.Status != delivery.Queued {
			t.Errorf("%s is %s, %v", id, d.Status, err)
		}
	}
	sameCounts(t, s)
}

// A quotaDisk is a directory whose files have a maximum total size, like a small disk. The limit applies to SQLite and
// to the reserve.
type quotaDisk struct {
	dir    string
	size   int64
	filled atomic.Int64 // bytes written by other programs
}

func smallDisk(t *testing.T, size int64) *quotaDisk {
	t.Helper()
	d := &quotaDisk{dir: t.TempDir(), size: size}
	onDisk(t, d.dir, d)
	sqlite.SetDisk(t, func(string) int64 { return size }, func(f *os.File, size int64) error {
		if d.lacks(filepath.Base(f.Name()), size) {
			return syscall.ENOSPC
		}
		return f.Truncate(size)
	})
	return d
}

// lacks reports whether there is no space for a file to grow to a size.
func (d *quotaDisk) lacks(name string, size int64) bool {
	has := int64(0)
	if info, err := os.Stat(filepath.Join(d.dir, name)); err == nil {
		has = info.Size()
	}
	return size > has && size-has > d.free()
}

func (d *quotaDisk) free() int64 {
	free := d.size - d.filled.Load()
	all, _ := os.ReadDir(d.dir)
	for _, f := range all {
		if info, err := f.Info(); err == nil {
			free -= info.Size()
		}
	}
	return free
}

func (d *quotaDisk) fill() { d.filled.Add(d.free()) }

func (d *quotaDisk) may(name string, size int64) int32 {
	if d.lacks(name, size) {
		return lib.SQLITE_FULL
	}
	return lib.SQLITE_OK
}

func (*quotaDisk) did(diskOp) {}

// Another program fills the disk. Stored deliveries can still be completed, dropped and redriven. Nothing new is
// stored, and weir can restart.
func TestFullDiskStillAllowsWhatIsStoredToEnd(t *testing.T) {
	for _, restart := range []bool{false, true} {
		disk := smallDisk(t, 16<<20)
		p := filepath.Join(disk.dir, "d.db")
		s, err := sqlite.Open(t.Context(), p, sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		for range 100 {
			r := post("a")
			r.Body = make([]byte, 10<<10)
			accept(t, s, r)
		}
		claimed, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 10, Lease: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		if restart {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		disk.fill()
		if restart {
			if s, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err != nil {
				t.Fatalf("weir does not start: %v", err)
			}
			if claimed, err = s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 10, Lease: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		for err = nil; err == nil; { // use up the space outside the reserve
			_, _, err = s.Accept(t.Context(), post("b"))
		}
		if !errors.Is(err, delivery.ErrFull) {
			t.Fatal(err)
		}
		for i, d := range claimed {
			to := []delivery.Status{delivery.Completed, delivery.Failed}[i%2]
			if lost, err := s.End(t.Context(), delivery.End{Claim: d.Claim(), To: to, Reason: delivery.Rejected}); err != nil || len(lost) > 0 {
				t.Fatalf("restart %v: end %d as %s: %v, lost %v", restart, i, to, err, lost)
			}
		}
		if n, err := s.Redrive(t.Context(), delivery.Filter{Status: delivery.Failed}, 2); err != nil || n != 2 {
			t.Errorf("restart %v: %d were redriven, %v", restart, n, err)
		}
		if n, err := s.Drop(t.Context(), delivery.Filter{Upstream: "a"}, 50); err != nil || n != 50 {
			t.Errorf("restart %v: %d were dropped, %v", restart, n, err)
		}
		if n, err := s.Drop(t.Context(), delivery.Filter{Status: delivery.Failed}, 50); err != nil || n != 50 {
			t.Errorf("restart %v: %d dead letters were deleted, %v", restart, n, err)
		}
		if _, _, err := s.Accept(t.Context(), post("a")); !errors.Is(err, delivery.ErrFull) {
			t.Errorf("restart %v: something new: %v, want %v", restart, err, delivery.ErrFull)
		}
		disk.filled.Store(0)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err != nil { // which allocates the reserve again immediately
			t.Fatal(err)
		}
		accept(t, s, post("a"))
		sameCounts(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
