package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A disk that is full: what was accepted is there, what does not find room is refused as such, and it goes on when there is room.
func TestADiskThatIsFull(t *testing.T) {
	disk := ownDisk(t, "2m")
	p := filepath.Join(disk, "d.db")
	s, err := sqlite.Open(t.Context(), p, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 512<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for err == nil {
		r := post("a")
		r.Body = make([]byte, 10<<10)
		var d delivery.Delivery
		if d, _, err = s.Accept(t.Context(), r); err == nil {
			ids = append(ids, d.ID)
		}
	}
	if len(ids) < 10 || !errors.Is(err, delivery.ErrFull) || errors.Is(err, delivery.ErrUncertain) {
		t.Errorf("after %d: %v, want %v", len(ids), err, delivery.ErrFull)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
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

// ownDisk is a small disk.
func ownDisk(t *testing.T, size string) string {
	t.Helper()
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("weir", disk, "tmpfs", 0, "size="+size+",mode=700"); err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("no disk of its own: %v", err)
		}
		t.Skipf("no disk of its own, which takes root: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
	return disk
}

// fillDisk leaves nothing free on a disk.
func fillDisk(t *testing.T, disk string) {
	t.Helper()
	f, err := os.Create(filepath.Join(disk, "filler"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for block := make([]byte, 4096); ; {
		if _, err := f.Write(block); errors.Is(err, syscall.ENOSPC) {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

// Somebody else fills the disk: what is stored can still be completed, dropped and redriven, nothing new is stored, and
// weir starts again.
func TestFullDiskStillAllowsWhatIsStoredToEnd(t *testing.T) {
	for _, restart := range []bool{false, true} {
		disk := ownDisk(t, "16m")
		p := filepath.Join(disk, "d.db")
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
		fillDisk(t, disk)
		if restart {
			if s, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err != nil {
				t.Fatalf("weir does not start: %v", err)
			}
			if claimed, err = s.Claim(t.Context(), delivery.Ask{Upstream: "a", Most: 10, Lease: time.Minute}); err != nil {
				t.Fatal(err)
			}
		}
		for err = nil; err == nil; { // into what room there is without the reserve
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
		if err := os.Remove(filepath.Join(disk, "filler")); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if s, err = sqlite.Open(t.Context(), p, sqlite.Options{}); err != nil { // which takes the reserve again immediately
			t.Fatal(err)
		}
		accept(t, s, post("a"))
		sameCounts(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
