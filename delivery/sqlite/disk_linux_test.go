package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// A disk that is full: what was accepted is there, what does not find room is refused as such, and it goes on when there is room.
func TestADiskThatIsFull(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("weir", disk, "tmpfs", 0, "size=2m,mode=700"); err != nil {
		t.Skipf("no disk of its own: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
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
